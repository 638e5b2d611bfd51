import { defer, map, type MonoTypeOperatorFunction } from 'rxjs';
import { warnProcess } from '../../../support/warnProcess.js';
import { isTracedLoss } from '../../../losses/TracedLoss.js';
import type { Step } from '../step.js';
import type { TrainOptions } from '../train.js';

/** A loss this many times that of the first step means that a run has diverged. */
const TIMES = 30;

/**
 * Warns once when the loss is no longer finite or `TIMES` that of the first step.
 * Losses that may be about 0 from the beginning, as those of RL are, are not compared.
 */
export function warnOfDivergence({
  loss: given,
  onWarning = (warning) => warnProcess(`tinker-rx: ${warning}`),
}: Pick<TrainOptions, 'loss' | 'onWarning'>): MonoTypeOperatorFunction<Step> {
  const compares = given === 'cross_entropy' || (isTracedLoss(given) && given.unit === 'pair');
  return (steps) =>
    defer(() => {
      let first: number | undefined;
      let told = false;
      const problem = (loss: number): string | undefined => {
        // A service that reports no loss has given NaN from the first step on.
        if (first === undefined && Number.isNaN(loss)) return undefined;
        if (!Number.isFinite(loss)) return `the loss is ${loss}`;
        first ??= loss;
        if (!compares || first <= 0 || loss < TIMES * first) return undefined;
        return `the loss is ${loss.toPrecision(3)}, at least ${TIMES} times that of the first step (${first.toPrecision(3)})`;
      };
      return steps.pipe(
        map((step) => {
          const found = told ? undefined : problem(step.loss);
          if (found === undefined) return step;
          told = true;
          const warning = `after ${step.index + 1} steps, ${found}: the run may have diverged. Lower the learning rate, or continue from an earlier checkpoint`;
          onWarning(warning);
          return { ...step, warning };
        }),
      );
    });
}
