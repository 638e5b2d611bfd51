import { catchError, concatMap, from, type Observable, throwError } from 'rxjs';
import { ClosedError, GoneError, NotFoundError } from '../../client/errors.js';
import { cancelling } from '../../support/cancelling.js';
import type { Sampleable } from '../../operators/sampleFrom.js';
import type { SampleResponse } from '../../wire/sampling.js';
import type { Renewable } from './Renewable.js';

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
