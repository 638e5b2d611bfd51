import { map, Observable, timer } from 'rxjs';
import type { SampleOptions } from '../../src/client/SamplingClient.js';
import type { RlTrainer } from '../../src/rl/learning/GrpoOptions.js';
import type { Group, Rollout, RolloutHook, Trajectory, Turn } from '../../src/rl/sampling/rollout.js';
import type { Datum } from '../../src/wire/datum.js';
import { ModelInput } from '../../src/wire/modelInput.js';
import type { SampleResponse } from '../../src/wire/sampling.js';
import { TensorData } from '../../src/wire/tensor.js';
import type { ForwardBackwardOutput } from '../../src/wire/training.js';

export interface FakeLoopOptions {
  /** How long a burst of passes, optimizer step and snapshot takes. Default 4. */
  readonly stepMs?: number;
  /** How long a sample takes, given how many were asked for before it. Default 1. */
  readonly sampleMs?: (asked: number) => number;
  /** How long the first snapshot takes. Default 1. */
  readonly firstMs?: number;
  /** What the trainer's logprobs are, given those of the sampler. Default: the same. */
  readonly trained?: (sampled: number) => number;
  readonly failsPass?: (pass: number) => boolean;
}

export interface LoopSampler {
  readonly steps: number;
  sample(options: SampleOptions): Observable<SampleResponse> & { cancel(): void };
}

/**
 * A trainer and samplers whose service takes `stepMs` for whatever was submitted since it began its last cycle: `log` has all
 * calls in order, `cancelled` the samples that were given up.
 */
export function fakeLoop(options: FakeLoopOptions = {}) {
  const { stepMs = 4, sampleMs = () => 1, firstMs = 1, trained = (sampled) => sampled, failsPass } = options;
  const log: string[] = [];
  const cancelled: string[] = [];
  let steps = 0;
  let asked = 0;
  let passes = 0;
  let running = 0;

  const sampler = (held: number): LoopSampler => ({
    steps: held,
    sample: ({ numSamples = 1, prompt, samplingParams }) => {
      const number = asked++;
      running++;
      log.push(`sample ${number} from ${held}${numSamples === 1 ? '' : ` x${numSamples}`}`);
      return Object.assign(
        new Observable<SampleResponse>((subscriber) =>
          timer(sampleMs(number))
            .pipe(
              map(() => {
                running--;
                return response(numSamples, prompt.length + (samplingParams?.seed ?? 0));
              }),
            )
            .subscribe(subscriber),
        ),
        { cancel: () => void cancelled.push(`sample ${number}`) },
      );
    },
  });
  const trainer: RlTrainer<LoopSampler> = {
    forwardBackward: (data, loss) => {
      const number = passes++;
      log.push(`pass ${data.length} ${loss}`);
      return timer(stepMs).pipe(
        map((): ForwardBackwardOutput => {
          if (failsPass?.(number) === true) throw new Error(`pass ${number} failed`);
          return { lossFnOutputType: 'fake', lossFnOutputs: data.map(outputs), metrics: { 'loss:sum': 1 } };
        }),
      );
    },
    optimStep: () => {
      steps++;
      log.push('optim');
      return timer(stepMs).pipe(map(() => ({})));
    },
    saveWeightsAndGetSamplingClient: () => {
      const held = steps;
      log.push(`snapshot ${held}`);
      return timer(held === 0 ? firstMs : stepMs).pipe(map(() => sampler(held)));
    },
    saveState: (name) => {
      log.push(`save ${name}`);
      return timer(stepMs).pipe(map(() => ({ path: `tinker://run/weights/${name}` })));
    },
  };
  const outputs = ({ lossFnInputs }: Datum) => ({
    logprobs: TensorData.from(((lossFnInputs['logprobs'] as TensorData).data as Float32Array).map(trained), 'float32'),
  });
  return { trainer, sampler, log, cancelled, running: () => running };
}

function response(count: number, seed: number): SampleResponse {
  return {
    promptCacheHitTokens: 0,
    sequences: Array.from({ length: count }, (_, index) => ({
      stopReason: 'stop',
      tokens: Int32Array.of(10 + index, 99),
      logprobs: Float32Array.of(-0.5, -((seed % 7) + 1) / 8),
    })),
  };
}

export const PROMPT = ModelInput.fromInts([1, 2, 3]);

/** A turn of the given tokens, each with logprob −1. */
export const turnOf = (prompt: readonly number[], tokens: readonly number[], more: Partial<Turn> = {}): Turn => ({
  prompt: ModelInput.fromInts(prompt),
  sequence: { stopReason: 'stop', tokens: Int32Array.from(tokens), logprobs: new Float32Array(tokens.length).fill(-1) },
  ...more,
});

/** One sample, and a reward by its place in the group: 1, 0, 1, … */
export const alternating: RolloutHook<string, LoopSampler> = (_, policy, { index }) =>
  policy.turn(PROMPT).pipe(map((turn): Rollout => ({ turns: [turn], reward: (index + 1) % 2 })));

/** A finished group with the given rewards. */
export function groupOf(order: number, rewards: readonly number[], more: Partial<Group<string>> = {}): Group<string> {
  const trajectories = rewards.map((reward, index): Trajectory => ({
    turns: [turnOf([1, 2], [3 + index, 4], { step: 0 })],
    ...{ reward, index, seed: 0, step: 0, durationMs: 1 },
  }));
  return { task: `task ${order}`, order, trajectories, failures: [], viable: true, tags: [], durationMs: 1, ...more };
}
