import { checkIntegers } from '../../support/checks.js';

/** A learning rate by step, counted from 0. */
export type Schedule = (step: number) => number;

/** Options of schedules that warm up. */
export interface WarmUpOptions {
  /** How many steps the rate takes to rise to its peak, in equal parts, the first step with one part. Default 0. */
  readonly warmUp?: number;
}

/** Options of schedules that decay. */
export interface DecayOptions extends WarmUpOptions {
  /** The step, warm-up included, at which the rate has come down to `end`: an integer ≥ 1. */
  readonly steps: number;
  /** The rate at that step and after it. Default 0. */
  readonly end?: number;
}

/** The same rate at every step, after the warm-up. */
export function constant(rate: number, options: WarmUpOptions = {}): Schedule {
  return schedule(rate, options, () => rate);
}

/** A rate that falls evenly from `peak` to `end`: at step s of n, without warm-up, `peak · (1 − s / n)`. */
export function linear(peak: number, options: DecayOptions): Schedule {
  const { steps, warmUp = 0, end = 0 } = checked(options);
  return schedule(peak, options, (step) => end + (peak - end) * (1 - passed(step, warmUp, steps)));
}

/** A rate that falls from `peak` to `end` along half a cosine: slowly, then fast, then slowly. */
export function cosine(peak: number, options: DecayOptions): Schedule {
  const { steps, warmUp = 0, end = 0 } = checked(options);
  return schedule(
    peak,
    options,
    (step) => end + ((peak - end) * (1 + Math.cos(Math.PI * passed(step, warmUp, steps)))) / 2,
  );
}

function schedule(peak: number, { warmUp = 0 }: WarmUpOptions, after: Schedule): Schedule {
  if (!(peak >= 0 && peak < Infinity)) throw new RangeError(`the rate must be finite and >= 0, got ${peak}`);
  checkIntegers({ warmUp }, 0);
  return (step) => (step < warmUp ? (peak * (step + 1)) / warmUp : after(step));
}

/** How much of the way down is done, from 0 to 1. */
function passed(step: number, warmUp: number, steps: number): number {
  return Math.min(1, (step - warmUp) / (steps - warmUp));
}

function checked(options: DecayOptions): DecayOptions {
  const { steps, warmUp = 0, end = 0 } = options;
  checkIntegers({ steps }, 1);
  if (!(warmUp < steps)) throw new RangeError(`warmUp must be less than steps (${steps}), got ${warmUp}`);
  if (!(end >= 0 && end < Infinity)) throw new RangeError(`end must be finite and >= 0, got ${end}`);
  return options;
}
