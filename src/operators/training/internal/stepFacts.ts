import { defer, map, type MonoTypeOperatorFunction } from 'rxjs';
import type { Datum } from '../../../wire/datum.js';
import { TensorData, type TensorInput } from '../../../wire/tensor.js';
import type { ForwardBackwardOutput } from '../../../wire/training.js';
import type { SubmittedStep } from './submitSteps.js';

/** What a step's numbers need of its data, so that the data itself need not be kept until the result is there. */
export interface DataFacts {
  readonly datums: number;
  readonly tokens: number;
  /** The sum of all weights; undefined if a datum has none. */
  readonly weight: number | undefined;
  /** Whether any token may carry a loss: false only where every datum has weights, and all of them are 0. */
  readonly carriesLoss: boolean;
}

export function factsOf(data: readonly Datum[]): DataFacts {
  let tokens = 0;
  let weight: number | undefined = 0;
  let carriesLoss = false;
  for (const { modelInput, lossFnInputs } of data) {
    tokens += modelInput.length;
    const weights = lossFnInputs['weights'];
    weight = weight === undefined || weights === undefined ? undefined : weight + sumOf(weights);
    // Weights below 0 are fine, and may add up to 0 with others.
    carriesLoss ||= weights === undefined || sumOf(weights, 'absolute') !== 0;
  }
  return { datums: data.length, tokens, weight, carriesLoss };
}

function sumOf(input: TensorInput, of: 'signed' | 'absolute' = 'signed'): number {
  let sum = 0;
  for (const value of input instanceof TensorData ? input.data : input) {
    const each = typeof value === 'object' ? sumOf(value, of) : Number(value);
    sum += of === 'absolute' ? Math.abs(each) : each;
  }
  return sum;
}

/** The loss of a step's passes together: as the service sums it, or as its outputs add up where it gives no sum. */
export function lossSumOf({ metrics, lossFnOutputs }: ForwardBackwardOutput): number {
  const sum = metrics['loss:sum'];
  if (sum !== undefined) return sum;
  // Some servers give no metrics, and the loss of every token instead.
  let added = 0;
  for (const { elementwise_loss: losses } of lossFnOutputs) {
    if (losses === undefined) return NaN;
    added += sumOf(losses);
  }
  return lossFnOutputs.length === 0 ? NaN : added;
}

/** The loss per unit of weight, or per datum where there are no weights. */
export function perUnit(lossSum: number, { weight, datums }: DataFacts): number {
  return lossSum / (weight !== undefined && weight > 0 ? weight : datums);
}

type Metrics = Readonly<Record<string, number>>;

/** All metrics under their names; the later ones win. Not by assigning: a metric called `__proto__` would be lost. */
export function mergeMetrics(parts: readonly (Metrics | undefined)[]): Metrics {
  return Object.fromEntries(parts.flatMap((part) => Object.entries(part ?? {})));
}

const CLOCK = 'clock_cycle:unique';

/** Adds how many cycles of the service lie between each step and the one before. */
export function withCycles(): MonoTypeOperatorFunction<SubmittedStep> {
  return (source) =>
    defer(() => {
      let before = NaN;
      return source.pipe(
        map((finished) => {
          // The cycle that ran the last part of the step: parts of one call are told apart as `…_1`, `…_2`.
          const clocks = Object.entries(finished.step.metrics).filter(([key]) => key.startsWith(CLOCK));
          const clock = clocks.length === 0 ? NaN : Math.max(...clocks.map(([, value]) => value));
          const cycles = clock - before;
          before = clock;
          return Number.isNaN(cycles) ? finished : { ...finished, step: { ...finished.step, cycles } };
        }),
      );
    });
}
