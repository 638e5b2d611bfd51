import { defaultIfEmpty, defer, from, last, map, type Observable, type ObservableInput, tap } from 'rxjs';
import { type Gate, underGate } from '../../pressure/gate.js';
import type { Evaluation, Step } from '../step.js';
import type { Mark, MarkedBatch, MarkPoint, StepAdditions } from '../trainingBatch.js';

/** What the marks of a step have started. */
export interface StartedMarks {
  readonly adds: readonly Observable<StepAdditions>[];
  readonly evaluations: readonly Observable<Evaluation>[];
  readonly afterwards: readonly ((step: Step) => ObservableInput<unknown>)[];
}

export type RunMarks = <T>(trainer: T, group: readonly MarkedBatch<T>[], at: MarkPoint) => StartedMarks;

const NONE: StartedMarks = { adds: [], evaluations: [], afterwards: [] };

/** Carries out the marks of steps. `gate` is closed while `limit` of what they have started is not finished. */
export function runMarks(limit: number, gate: Gate): RunMarks {
  let pending = 0;
  const count = (change: 1 | -1) => {
    pending += change;
    gate.set(pending < limit);
  };

  const call = <T>(mark: Mark<T>, trainer: T, at: MarkPoint): StartedMarks => {
    const { adds, evaluation, afterwards } = mark(trainer, at) ?? {};
    if (adds !== undefined) count(1);
    if (evaluation !== undefined) count(1);
    const added = adds === undefined ? [] : [at.start(from(adds).pipe(defaultIfEmpty({})))];
    // One that fails ends the run, which then has no use for room.
    for (const result of added) result.subscribe({ complete: () => count(-1), error: () => {} });
    return {
      adds: added,
      evaluations: evaluation === undefined ? [] : [evaluate(evaluation, at).pipe(tap({ complete: () => count(-1) }))],
      afterwards: afterwards === undefined ? [] : [afterwards],
    };
  };

  return (trainer, group, at) => {
    // Of the batches of one step, each may carry the same mark.
    const marks = new Set(group.flatMap((batch) => batch.marks));
    if (marks.size === 0) return NONE;
    const carried = Array.from(marks, (mark) => call(mark, trainer, at));
    return {
      adds: carried.flatMap(({ adds }) => adds),
      evaluations: carried.flatMap(({ evaluations }) => evaluations),
      afterwards: carried.flatMap(({ afterwards }) => afterwards),
    };
  };
}

function evaluate(
  evaluation: () => ObservableInput<Readonly<Record<string, number>>>,
  { index, scheduler }: MarkPoint,
): Observable<Evaluation> {
  return defer(() => {
    const startedMs = scheduler.now();
    // What an evaluation reads has nothing to do with how full training is.
    return underGate(undefined, defer(evaluation)).pipe(
      defaultIfEmpty({}),
      last(),
      map((metrics) => ({ index, metrics, durationMs: scheduler.now() - startedMs })),
    );
  });
}
