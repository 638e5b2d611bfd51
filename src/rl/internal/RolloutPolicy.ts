import { map, Subscription } from 'rxjs';
import type { SampleOptions } from '../../client/SamplingClient.js';
import { TinkerFuture } from '../../client/TinkerFuture.js';
import { cancelling } from '../../operators/internal/cancelling.js';
import type { Sampleable } from '../../operators/sampleFrom.js';
import type { ModelInput } from '../../wire/modelInput.js';
import type { SamplingParams } from '../../wire/sampling.js';
import type { LivePolicy, PolicyVersion } from '../LivePolicy.js';
import type { Policy, Turn } from '../rollout.js';
import { seedFrom } from './seeds.js';

/** The policy as one rollout sees it: newest weights, its own seeds, and everything it asked for cancelled with it. */
export class RolloutPolicy<S extends Sampleable> implements Policy<S> {
  readonly #live: LivePolicy<S>;
  readonly #defaults: SamplingParams | undefined;
  readonly #seed: number;
  #asked = 0;
  #running: Subscription | undefined;
  #controller: AbortController | undefined;
  #ended = false;

  constructor(live: LivePolicy<S>, defaults: SamplingParams | undefined, seed: number) {
    this.#live = live;
    this.#defaults = defaults;
    this.#seed = seed;
  }

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
    const { sampler, step } = this.#newest();
    const asked = this.#asked++;
    const seed = asked === 0 ? this.#seed : seedFrom(this.#seed, asked);
    const samplingParams: SamplingParams = { seed, ...this.#defaults, ...withoutUndefinedSeed(options.samplingParams) };
    const altered = alterations(samplingParams);
    const { prompt } = options;
    const future = new TinkerFuture(() =>
      cancelling(sampler.sample({ ...options, samplingParams })).pipe(
        map(({ sequences }) =>
          sequences.map((sequence): Turn => ({ prompt, sequence, step, ...(altered === '' ? {} : { altered }) })),
        ),
      ),
    );
    if (this.#ended) future.cancel();
    else (this.#running ??= new Subscription()).add(() => future.cancel());
    return future;
  }

  turn(prompt: ModelInput, samplingParams: SamplingParams = {}): TinkerFuture<Turn> {
    const turns = this.sample({ prompt, samplingParams });
    const future = new TinkerFuture(() => turns.pipe(map(([first]) => first!)));
    this.#running?.add(() => future.cancel());
    return future;
  }

  /** Cancels what is still being sampled and aborts the signal. */
  end(): void {
    this.#ended = true;
    this.#running?.unsubscribe();
    this.#controller?.abort();
  }

  #newest(): PolicyVersion<S> {
    // Nothing is admitted before there is a first version.
    return this.#live.current!;
  }
}

function withoutUndefinedSeed(params: SamplingParams = {}): SamplingParams {
  if (!('seed' in params) || params.seed !== undefined) return params;
  const { seed: _, ...rest } = params;
  return rest;
}

/** How the parameters change the distribution that is sampled from; empty where they do not. */
function alterations({ temperature = 1, topP = 1, topK = -1 }: SamplingParams): string {
  return [
    ...(temperature === 1 ? [] : [`temperature ${temperature}`]),
    ...(topP === 1 ? [] : [`top-p ${topP}`]),
    ...(topK === -1 ? [] : [`top-k ${topK}`]),
  ].join(', ');
}
