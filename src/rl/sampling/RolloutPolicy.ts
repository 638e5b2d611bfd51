import { map, tap } from 'rxjs';
import type { SampleOptions } from '../../client/SamplingClient.js';
import { TinkerFuture } from '../../client/TinkerFuture.js';
import { cancelling } from '../../support/cancelling.js';
import type { Sampleable } from '../../operators/sampling/sampleFrom.js';
import type { ModelInput } from '../../wire/modelInput.js';
import type { SampledSequence, SamplingParams } from '../../wire/sampling.js';
import type { LivePolicy, PolicyVersion } from '../pacing/LivePolicy.js';
import type { SampleEvent } from '../pacing/rlEvent.js';
import type { Policy, Turn } from './rollout.js';
import { seedFrom } from '../../support/random.js';

/** The policy as one rollout sees it: newest weights, its own seeds, and everything it asked for cancelled with it. */
export class RolloutPolicy<S extends Sampleable> implements Policy<S> {
  #asked = 0;
  #futures: TinkerFuture<unknown>[] = [];
  #controller: AbortController | undefined;
  #ended = false;

  constructor(
    private readonly live: LivePolicy<S>,
    private readonly defaults: SamplingParams | undefined,
    private readonly seed: number,
    private readonly tell: (event: OwnSampleEvent) => void,
  ) {}

  get step(): number {
    return this.#newest().step;
  }

  get sampler(): S {
    return this.#newest().sampler;
  }

  /** Made when it is first asked for: most rollouts need none, and there may be very many. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#ended) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  sample(options: SampleOptions): TinkerFuture<readonly Turn[]> {
    return this.#ask(options, (turns) => turns);
  }

  turn(prompt: ModelInput, samplingParams: SamplingParams = {}): TinkerFuture<Turn> {
    return this.#ask({ prompt, samplingParams }, ([first]) => first!);
  }

  #ask<A>(options: SampleOptions, pick: (turns: readonly Turn[]) => A): TinkerFuture<A> {
    const { sampler, step } = this.#newest();
    const asked = this.#asked++;
    const seed = asked === 0 ? this.seed : seedFrom(this.seed, asked);
    const samplingParams: SamplingParams = { seed, ...this.defaults, ...withoutUndefinedSeed(options.samplingParams) };
    const altered = alterations(samplingParams);
    const { prompt } = options;
    const turnOf = (sequence: SampledSequence): Turn => ({
      prompt,
      sequence,
      step,
      ...(altered === '' ? {} : { altered }),
    });
    const future = new TinkerFuture(() => {
      const call = sampler.sample({ ...options, samplingParams });
      const requestId = () => (call as { readonly requestId?: string }).requestId;
      const failed = (error?: unknown) =>
        this.tell({ type: 'sample-failed', sample: asked, error, requestId: requestId() });
      this.tell({ type: 'sample-started', sample: asked, prompt });
      return cancelling(call).pipe(
        map(({ sequences }) => sequences.map(turnOf)),
        tap({
          next: (turns) => this.tell({ type: 'sample-finished', sample: asked, turns, requestId: requestId() }),
          error: failed,
          unsubscribe: failed,
        }),
        map(pick),
      );
    });
    if (this.#ended) future.cancel();
    else this.#futures.push(future);
    return future;
  }

  /** Cancels what is still being sampled and aborts the signal. */
  end(): void {
    this.#ended = true;
    // One that has its result is not touched by this.
    for (const future of this.#futures) future.cancel();
    this.#futures = [];
    this.#controller?.abort();
  }

  #newest(): PolicyVersion<S> {
    // Nothing is admitted before there is a first version.
    return this.live.current!;
  }
}

type Own<E> = E extends unknown ? Omit<E, 'index'> : never;
/** An event of a sample, without the place of its rollout. */
export type OwnSampleEvent = Own<SampleEvent>;

function withoutUndefinedSeed(params: SamplingParams = {}): SamplingParams {
  if (!('seed' in params) || params.seed !== undefined) return params;
  const { seed: _, ...rest } = params;
  return rest;
}

/** How the parameters change the distribution that is sampled from; empty if they do not. */
function alterations({ temperature = 1, topP = 1, topK = -1 }: SamplingParams): string {
  return [
    ...(temperature === 1 ? [] : [`temperature ${temperature}`]),
    ...(topP === 1 ? [] : [`top-p ${topP}`]),
    ...(topK === -1 ? [] : [`top-k ${topK}`]),
  ].join(', ');
}
