import { catchError, concatMap, from, type Observable, throwError } from 'rxjs';
import { ClosedError, GoneError, NotFoundError } from '../../client/errors.js';
import { cancelling } from '../../support/cancelling.js';
import type { Sampleable } from '../../operators/sampling/sampleFrom.js';
import type { SampleResponse } from '../../wire/sampling.js';

/** Something that is opened when it is first needed, kept, and opened again when it turns out to be lost. */
export class Renewable<T> {
  #opening: Promise<T> | undefined;

  constructor(private readonly open: () => PromiseLike<T>) {}

  get(): Promise<T> {
    return (this.#opening ??= this.#start());
  }

  /** Opens another one instead of `lost`. Callers that lost the same one get the same new one. */
  async renew(lost: T): Promise<T> {
    const opening = this.get();
    const current = await opening;
    if (current !== lost) return current;
    // Another caller may have come first.
    if (this.#opening === opening) this.#opening = this.#start();
    return this.get();
  }

  /** The one that is open, if one is. */
  async opened(): Promise<T | undefined> {
    return this.#opening?.catch(() => undefined);
  }

  #start(): Promise<T> {
    const opening = Promise.resolve().then(() => this.open());
    // A failure is not kept: the next caller tries again.
    opening.catch(() => {
      if (this.#opening === opening) this.#opening = undefined;
    });
    return opening;
  }
}

/**
 * A service that was started again no longer knows the samplers that were opened before. Once one caller has noticed,
 * the client they came from is closed.
 */
export const isLost = (error: unknown): boolean =>
  error instanceof NotFoundError || error instanceof GoneError || error instanceof ClosedError;

/**
 * A sampler that outlives its service: a sample whose sampler the service no longer knows is sent once more, through
 * one that was opened again.
 */
export function lastingSampler<S extends Sampleable>(
  first: S,
  samplers: Renewable<S>,
  guard: (work: Observable<SampleResponse>, promptTokens: number) => Observable<SampleResponse>,
): Sampleable {
  let sampler = first;
  return {
    sample: (options) => {
      const used = sampler;
      const again = async (): Promise<S> => (sampler = await samplers.renew(used));
      // Read only after a failure: nearly every sample succeeds at the first try.
      const retried = (error: unknown): Observable<SampleResponse> =>
        isLost(error)
          ? from(again()).pipe(concatMap((next) => cancelling(next.sample(options))))
          : throwError(() => error);
      return guard(cancelling(used.sample(options)).pipe(catchError(retried)), options.prompt.length);
    },
  };
}
