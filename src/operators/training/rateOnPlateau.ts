import { defer, type MonoTypeOperatorFunction, tap } from 'rxjs';
import { checkAtLeast } from '../../support/checks.js';
import { plateauFinder, type PlateauOptions } from '../metrics/plateau.js';
import { constant, type Schedule } from './schedules.js';
import type { Step } from './step.js';

/** Options of `rateOnPlateau`. */
export interface RateOnPlateauOptions extends PlateauOptions<Step> {
  /** What the rate is multiplied by, above 0 and below 1. Default 0.5. */
  readonly factor?: number;
  /** The lowest rate: ≥ 0. Default 0. */
  readonly least?: number;
}

/** A learning rate that steps turn down. */
export interface PlateauRate {
  /** For `adam` of `train`. */
  readonly learningRate: Schedule;
  /** Put it behind `train`: it watches the steps, which pass unchanged. */
  readonly watch: MonoTypeOperatorFunction<Step>;
}

/**
 * A learning rate that is turned down whenever a metric has not improved for `patience` steps.
 *
 * ```ts
 * const rate = rateOnPlateau(1e-4, { metric: 'test/nll', patience: 3 });
 * batches.pipe(train(trainer, { loss: 'cross_entropy', adam: { learningRate: rate.learningRate } }), rate.watch)
 * ```
 * Steps that are submitted already keep their rate: a new one counts `ahead` + 1 steps later. Make one for each run. A run that is
 * resumed begins with the first rate again. Errors of the steps, also throws of `metric`, and completion pass. Holds one number.
 */
export function rateOnPlateau(
  rate: number,
  { factor = 0.5, least = 0, ...options }: RateOnPlateauOptions,
): PlateauRate {
  if (!(factor > 0 && factor < 1)) throw new RangeError(`factor must be above 0 and below 1, got ${factor}`);
  checkAtLeast({ least }, 0);
  const find = plateauFinder(options);
  let current = constant(rate)(0);
  return {
    learningRate: () => current,
    watch: (steps) =>
      defer(() => {
        const isPlateau = find();
        return steps.pipe(
          tap((step) => {
            if (isPlateau(step)) current = Math.max(least, current * factor);
          }),
        );
      }),
  };
}
