import { type Either, mapLeft } from 'fp-ts/lib/Either.js';
import {
  combineLatest,
  defer,
  isObservable,
  map,
  type Observable,
  type ObservableInput,
  of,
  type OperatorFunction,
  tap,
  throwIfEmpty,
} from 'rxjs';
import type { SampleOptions } from '../../client/SamplingClient.js';
import { estimatePromptBytes, ModelInput } from '../../wire/modelInput.js';
import type { SampleResponse } from '../../wire/sampling.js';
import { isTinkerError, RequestFailedError, type TinkerError, ValidationError } from '../../wire/tinkerError.js';
import { cancelling } from '../../support/cancelling.js';
import { mergeMapWeighted } from '../flow/mergeMapWeighted.js';
import { failurePlan, type FailurePolicy } from '../flow/FailurePolicy.js';
import { supervised } from '../flow/shared/supervised.js';
import { settle } from '../flow/settle.js';

/** What `sampleFrom` needs of a sampler. A `SamplingClient` is one; so is a fake in a test. */
export interface Sampleable {
  /** Samples from a prompt, as `SamplingClient.sample` does. */
  sample(options: SampleOptions): ObservableInput<SampleResponse>;
}

/** An item and what was sampled for it, and from which sampler. */
export interface Sampled<P, S> {
  /** The source's value that was sampled for. */
  readonly item: P;
  /** The sampler it was sampled from. */
  readonly sampler: S;
  /** The samples. */
  readonly response: SampleResponse;
}

/** An item that failed, and why: the `left` of a settled stream. */
export interface SampleFailure<P> {
  /** The source's value whose sample failed. */
  readonly item: P;
  /**
   * The service's or the client's error. What `request` throws is a `ValidationError`, and what a custom sampler fails
   * with a `RequestFailedError`, with the thrown value as `cause`, where it is no `TinkerError` itself.
   */
  readonly error: TinkerError;
}

/** An item that `sampleFrom` can ask for as it is; for any other give `request`. */
export type PromptItem =
  | ModelInput
  | {
      /** What to continue. */
      readonly prompt: ModelInput;
    };

/** Options of `sampleFrom`. */
export interface SampleFromOptions<P> extends Omit<SampleOptions, 'prompt'> {
  /** What to ask for an item; wins over the other options. Default: the item is the prompt, or has it as `prompt`. */
  readonly request?: (item: P) => SampleOptions;
  /** How many bytes of prompts may be in flight, estimated as they are sent. Default 128 MiB. */
  readonly budgetBytes?: number | Observable<number>;
  /** How many prompts may be in flight: ≥ 1. Default 2000. */
  readonly concurrency?: number;
  /** Whether a prompt that fails becomes a `left` instead of ending the stream. Default: no. */
  readonly settle?: boolean;
  /** What a prompt that fails does; not together with `settle`. Default 'fail': it ends the stream. */
  readonly onFailure?: FailurePolicy<P>;
}

/**
 * Samples for every item, as many at once as the budget allows, and emits results as they come.
 *
 * ```
 * source    -a-b-c-|
 * a          -----x|
 * b            -y|
 * c              -----z|
 * result    ----y-x---z|
 * ```
 * The sampler may be a stream of samplers: each item uses the newest one there is when it is admitted, and items wait
 * until there is a first. With `settle`, results are Eithers, and one bad prompt does not end the stream; `onFailure` retries such a prompt, leaves
 * it out, or keeps it for a second run.
 * ```ts
 * prompts.pipe(sampleFrom(sampler, { numSamples: 16, samplingParams: { maxTokens: 64 } }))
 * ```
 * Errors of the source, of a sample, and of the stream of samplers (also when it ends without one) end the stream and
 * cancel what is in flight, on the server too if supported; so does unsubscribing. Completes when the source and
 * all samples have. Items that wait are queued, and its {@link Gate} is closed meanwhile, also while downstream
 * operators are full: nothing is sampled that there is no room for.
 */
export function sampleFrom<P, S extends Sampleable>(
  sampler: S | Observable<S>,
  options: SampleFromOptions<P> & WithRequest<P> & { readonly settle: true },
): OperatorFunction<P, Either<SampleFailure<P>, Sampled<P, S>>>;
export function sampleFrom<P, S extends Sampleable>(
  sampler: S | Observable<S>,
  options: SampleFromOptions<P> & WithRequest<P> & { readonly settle?: false },
): OperatorFunction<P, Sampled<P, S>>;
export function sampleFrom<P extends PromptItem, S extends Sampleable>(
  sampler: S | Observable<S>,
  options: SampleFromOptions<P> & { readonly settle: true },
): OperatorFunction<P, Either<SampleFailure<P>, Sampled<P, S>>>;
export function sampleFrom<P extends PromptItem, S extends Sampleable>(
  sampler: S | Observable<S>,
  options?: SampleFromOptions<P> & { readonly settle?: false },
): OperatorFunction<P, Sampled<P, S>>;
export function sampleFrom<P, S extends Sampleable>(
  sampler: S | Observable<S>,
  options: SampleFromOptions<P> = {},
): OperatorFunction<P, unknown> {
  const {
    request,
    budgetBytes = 128 * 1024 * 1024,
    concurrency = 2000,
    settle: settles = false,
    onFailure,
    ...shared
  } = options;
  if (settles && onFailure !== undefined) throw new RangeError('settle and onFailure cannot both be given');
  const plan = onFailure === undefined ? undefined : failurePlan(onFailure);
  // The prompt first, though it is the same: an object that begins with a spread takes V8 ten times as long to make and to look through.
  const ask = (item: P): SampleOptions =>
    request === undefined
      ? { prompt: promptOf(item), ...shared }
      : Object.assign({ prompt: undefined as never }, shared, request(item));
  return (source) =>
    defer(() => {
      let newest: S | undefined = isObservable(sampler) ? undefined : sampler;
      const sample = ({ item, options }: Ask<P>): Observable<Sampled<P, S>> => {
        const from = newest!;
        return cancelling(from.sample(options()), (response) => ({ item, sampler: from, response }));
      };
      const settled = (ask: Ask<P>) =>
        defer(() => sample(ask)).pipe(
          settle(),
          map(mapLeft((error): SampleFailure<P> => ({ item: ask.item, error: asTinkerError(error) }))),
        );
      const project = settles
        ? settled
        : plan === undefined
          ? sample
          : (ask: Ask<P>) => supervised(ask.item, () => sample(ask), plan);
      // Nothing is admitted before the first sampler, as nothing is before the first budget.
      const budget = isObservable(sampler)
        ? combineLatest([
            isObservable(budgetBytes)
              ? budgetBytes.pipe(throwIfEmpty(() => new Error('the stream of budgets ended without a budget')))
              : of(budgetBytes),
            sampler.pipe(
              throwIfEmpty(() => new Error('the stream of samplers ended without a sampler')),
              tap((newer) => (newest = newer)),
            ),
          ]).pipe(map(([bytes]) => bytes))
        : budgetBytes;
      return source.pipe(
        map((item) => prepared(item, ask)),
        mergeMapWeighted<Ask<P>, Observable<unknown>>(project, {
          weight: ({ bytes }) => bytes,
          budget,
          concurrency,
        }),
      );
    });
}

interface WithRequest<P> {
  readonly request: (item: P) => SampleOptions;
}

interface Ask<P> {
  readonly item: P;
  readonly bytes: number;
  /** Throws what made the item unfit to be asked for. */
  readonly options: () => SampleOptions;
}

/** An unfit item weighs nothing and fails when its turn comes, so that it fails alone where failures are settled. */
function prepared<P>(item: P, ask: (item: P) => SampleOptions): Ask<P> {
  try {
    const options = ask(item);
    return { item, bytes: estimatePromptBytes(options.prompt), options: () => options };
  } catch (error) {
    return {
      item,
      bytes: 0,
      options: () => {
        throw isTinkerError(error) ? error : new ValidationError(messageOf(error), { cause: error });
      },
    };
  }
}

function asTinkerError(error: unknown): TinkerError {
  return isTinkerError(error) ? error : new RequestFailedError(messageOf(error), { category: 'unknown', cause: error });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function promptOf(item: unknown): ModelInput {
  const prompt = item instanceof ModelInput ? item : (item as { readonly prompt?: unknown } | null)?.prompt;
  if (!(prompt instanceof ModelInput))
    throw new ValidationError('an item must be a ModelInput, or have one as `prompt`');
  return prompt;
}
