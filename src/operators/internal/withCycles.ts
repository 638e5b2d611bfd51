import { defer, map, type MonoTypeOperatorFunction } from 'rxjs';
import type { SubmittedStep } from './submitSteps.js';

const CLOCK = 'clock_cycle:unique';

/** Adds how many cycles of the service lie between each step and the one before. */
export function withCycles(): MonoTypeOperatorFunction<SubmittedStep> {
  return (source) =>
    defer(() => {
      let before: number | undefined;
      return source.pipe(
        map((finished) => {
          const clock = clockOf(finished.step.metrics);
          const cycles = clock === undefined || before === undefined ? undefined : clock - before;
          before = clock;
          return cycles === undefined ? finished : { ...finished, step: { ...finished.step, cycles } };
        }),
      );
    });
}

/** The cycle that ran the last part of the step: parts of one call are told apart as `…_1`, `…_2`. */
function clockOf(metrics: Readonly<Record<string, number>>): number | undefined {
  let latest: number | undefined;
  for (const [key, value] of Object.entries(metrics)) {
    if (key.startsWith(CLOCK)) latest = Math.max(latest ?? value, value);
  }
  return latest;
}
