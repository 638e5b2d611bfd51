import { map, Observable, type ObservableInput, timer } from 'rxjs';
import type { ForwardPasses, Saves, TakesSnapshots, Trainable } from '../../src/operators/Trainable.js';
import type { Datum } from '../../src/wire/datum.js';
import { ModelInput } from '../../src/wire/modelInput.js';
import { TensorData } from '../../src/wire/tensor.js';
import type { ForwardBackwardOutput } from '../../src/wire/training.js';

export interface FakeSampler {
  /** How many optimizer steps its weights hold. */
  readonly steps: number;
}

export interface FakeTrainerOptions {
  /** How long a pass and its optimizer step take, one after the other, as a queue would. Default 4. */
  readonly passMs?: number;
  readonly saveMs?: number;
  readonly metrics?: (pass: number) => Readonly<Record<string, number>>;
  /** Which passes, counted from 0, fail. */
  readonly fails?: (pass: number) => boolean;
  readonly outputs?: (data: readonly Datum[]) => ForwardBackwardOutput['lossFnOutputs'];
}

/** A datum of `tokens` tokens, each of weight `weight`; without, it has no weights. */
export function datum(tokens: number, weight?: number): Datum {
  const ids = Array.from({ length: tokens }, (_, place) => place);
  return {
    modelInput: ModelInput.fromInts(ids),
    lossFnInputs: {
      target_tokens: ids,
      ...(weight === undefined ? {} : { weights: new Float32Array(tokens).fill(weight) }),
    },
  };
}

/**
 * A trainer whose service works through calls in the order they were made, each pass taking `passMs`. Like the real
 * client's, its calls are under way once they are made; `log` has them in order, `cancelled` those cut short.
 */
export function fakeTrainer({ passMs = 4, saveMs = 3, metrics, fails, outputs }: FakeTrainerOptions = {}) {
  const log: string[] = [];
  const cancelled: string[] = [];
  let passes = 0;
  let steps = 0;
  let outstanding = 0;

  /** A call that is under way at once and can be cancelled. */
  const call = <T>(name: string, work: Observable<T>): Observable<T> & { cancel(): void } => {
    log.push(name);
    return Object.assign(new Observable<T>((subscriber) => work.subscribe(subscriber)), {
      cancel: () => void cancelled.push(name),
    });
  };
  const pass = (name: string, data: readonly Datum[]) => {
    const number = passes++;
    outstanding++;
    const output = (): ForwardBackwardOutput => ({
      lossFnOutputType: 'fake',
      lossFnOutputs: outputs?.(data) ?? data.map(() => ({ logprobs: TensorData.from([-1], 'float32') })),
      metrics: metrics?.(number) ?? { 'loss:sum': 10 - number },
    });
    return call(
      name,
      timer(outstanding * passMs).pipe(
        map(() => {
          outstanding--;
          if (fails?.(number) === true) throw new Error(`pass ${number} failed`);
          return output();
        }),
      ),
    );
  };

  const trainer = {
    forwardBackward: (data, loss, { lossFnConfig } = {}) =>
      pass(
        `forwardBackward ${data.length} ${loss}${lossFnConfig === undefined ? '' : JSON.stringify(lossFnConfig)}`,
        data,
      ),
    forwardBackwardCustom: (data, loss) => pass(`forwardBackwardCustom ${data.length} ${loss.name}`, data),
    // Takes its turn in the queue like any pass, and teaches nothing.
    forward: (data, loss) => {
      const metrics = { 'loss:sum': 100 - steps };
      return call(
        `forward ${data.length} ${loss}`,
        timer(outstanding * passMs).pipe(map(() => ({ lossFnOutputType: 'fake', lossFnOutputs: [], metrics }))),
      );
    },
    optimStep: (params) => {
      steps++;
      return call(`optimStep ${JSON.stringify(params)}`, timer(outstanding * passMs).pipe(map(() => ({}))));
    },
    saveState: (name, options) => {
      const held = steps;
      return call(
        `saveState ${name}${'ttlSeconds' in options ? ` ${options.ttlSeconds}` : ''}`,
        timer(outstanding * passMs + saveMs).pipe(map(() => ({ path: `tinker://run/weights/${name}@${held}` }))),
      );
    },
    saveWeightsForSampler: (name) => {
      const held = steps;
      return call(
        `saveWeightsForSampler ${name}`,
        timer(outstanding * passMs + saveMs).pipe(
          map(() => ({ path: `tinker://run/sampler_weights/${name}@${held}` })),
        ),
      );
    },
    saveWeightsAndGetSamplingClient: (): ObservableInput<FakeSampler> => {
      const held = steps;
      return call('snapshot', timer(outstanding * passMs).pipe(map(() => ({ steps: held }))));
    },
  } satisfies Trainable & Saves & TakesSnapshots<FakeSampler> & ForwardPasses;
  return { trainer, log, cancelled };
}
