import type { Step } from '../../operators/step.js';
import type { Change } from '../state/changes.js';
import { columnsOfRow } from '../state/columns.js';

/** A step, and when it came. */
export interface TimedStep extends Step {
  readonly atMs: number;
}

const WINDOW = 10;

/**
 * What each next step of a run changes in the state of a dashboard: a row, with the tokens a second of the last ten;
 * the values of finished evaluations at the step they belong to; its checkpoint. Holds ten pairs of numbers.
 */
export function stepChanges(run: string): (step: TimedStep) => Iterable<Change> {
  const recent: { readonly atMs: number; readonly tokens: number }[] = [];
  const tokensPerSecond = ({ atMs, tokens }: TimedStep): number => {
    recent.push({ atMs, tokens });
    if (recent.length > WINDOW + 1) recent.shift();
    const [first, ...rest] = recent;
    const tookMs = atMs - first!.atMs;
    return tookMs > 0 ? (rest.reduce((sum, each) => sum + each.tokens, 0) / tookMs) * 1000 : NaN;
  };
  return (step) => changesOf(run, step, tokensPerSecond(step));
}

function* changesOf(run: string, step: TimedStep, tokensPerSecond: number): Iterable<Change> {
  const { index, loss, learningRate, tokens, datums, durationMs, cycles, atMs, checkpoint, evaluations = [] } = step;
  yield {
    kind: 'steps',
    run,
    index: [index],
    columns: columnsOfRow({
      ...numbersOf(step.metrics),
      loss,
      learningRate,
      tokens,
      datums,
      durationMs,
      atMs,
      ...(cycles === undefined ? {} : { cycles }),
      ...(Number.isNaN(tokensPerSecond) ? {} : { tokensPerSecond }),
    }),
  };
  for (const evaluation of evaluations) {
    const values = Object.fromEntries(
      Object.entries(numbersOf(evaluation.metrics)).map(([name, value]) => [`eval/${name}`, value]),
    );
    yield { kind: 'values', run, index: evaluation.index, values };
  }
  if (checkpoint !== undefined) yield { kind: 'checkpoint', run, checkpoint, atMs };
}

/** Logs are written by people too: what is no number is no point of a curve. */
function numbersOf(metrics: Readonly<Record<string, unknown>> | undefined): Record<string, number> {
  return Object.fromEntries(
    Object.entries(metrics ?? {}).filter((entry): entry is [string, number] => Number.isFinite(entry[1])),
  );
}
