import type { Step } from '../../operators/training/step.js';
import type { Change } from '../state/changes.js';
import { toColumns } from '../state/rows.js';
import type { Row } from '../state/Series.js';

/** A step, and when it came. */
export interface TimedStep extends Step {
  readonly atMs: number;
}

const WINDOW = 10;

/**
 * What the next steps of a run change in the state of a dashboard: a row each, with the tokens per second of the last ten;
 * the values of finished evaluations at the step they belong to; their checkpoints. Holds ten pairs of numbers.
 */
export function stepChanges(run: string): (steps: readonly TimedStep[]) => Change[] {
  const tokensPerSecond = rate();
  return (steps) => {
    const changes: Change[] = [];
    let rows: Row[] = [];
    const flush = () => {
      if (rows.length > 0) changes.push({ kind: 'steps', run, ...toColumns(rows) });
      rows = [];
    };
    for (const step of steps) {
      rows.push({ index: step.index, values: valuesOf(step, tokensPerSecond(step)) });
      const { checkpoint, evaluations = [], atMs } = step;
      // What follows may be about the rows so far: they come first.
      if (checkpoint !== undefined || evaluations.length > 0) flush();
      for (const { index, metrics } of evaluations) {
        const values: Record<string, number> = {};
        addNumbers(values, metrics, 'eval/');
        changes.push({ kind: 'values', run, index, values });
      }
      if (checkpoint !== undefined) {
        changes.push({ kind: 'checkpoint', run, checkpoint, atMs: Number.isFinite(atMs) ? atMs : undefined });
      }
    }
    flush();
    return changes;
  };
}

function valuesOf(step: TimedStep, tokensPerSecond: number): Record<string, number> {
  const { loss, learningRate, tokens, datums, durationMs, atMs, cycles } = step;
  const values: Record<string, number> = {};
  addNumbers(values, step.metrics);
  addNumbers(values, { loss, learningRate, tokens, datums, durationMs, atMs, cycles, tokensPerSecond });
  return values;
}

/** Logs are written by people too: what is no number is no point of a curve. */
function addNumbers(values: Record<string, number>, more: Readonly<Record<string, unknown>> = {}, prefix = ''): void {
  for (const name in more) {
    const value = more[name];
    if (typeof value === 'number' && Number.isFinite(value)) values[prefix + name] = value;
  }
}

/** The tokens per second over the last ten steps; NaN if no time has passed. */
function rate(): (step: TimedStep) => number {
  const recent: { readonly atMs: number; readonly tokens: number }[] = [];
  let sum = 0;
  return ({ atMs, tokens: given }) => {
    const tokens = Number.isFinite(given) ? given : 0;
    recent.push({ atMs, tokens });
    sum += tokens;
    if (recent.length > WINDOW + 1) sum -= recent.shift()!.tokens;
    const tookMs = atMs - recent[0]!.atMs;
    // The first of them was made before this time began.
    return tookMs > 0 ? ((sum - recent[0]!.tokens) / tookMs) * 1000 : NaN;
  };
}
