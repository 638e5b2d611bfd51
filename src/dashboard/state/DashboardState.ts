import type { Checkpoint } from '../../operators/trainingBatch.js';
import type { Change, DashboardMessage, DashboardSample, RunStatus, Standing } from './changes.js';
import { EventState } from './EventState.js';
import { packColumn, unpackColumn } from './packColumn.js';
import { Ring } from './Ring.js';
import { Series } from './Series.js';

const ROWS_A_CHANGE = 1000;
/** Of all samples together: long ones are fewer. */
export const PIECES_KEPT = 1_000_000;
/** What a sample takes of that. */
export const weightOf = ({ pieces, prompt }: DashboardSample): number => pieces.length + prompt.length / 10;

/** One run: its curves, and what was saved of it. */
export class RunState {
  readonly series = new Series();
  readonly checkpoints = new Ring<Checkpoint & { readonly atMs?: number }>(2000);
  status: RunStatus = 'running';
  message: string | undefined;

  constructor(readonly name: string) {}
}

/**
 * Everything a dashboard shows, folded from changes. Server and page hold the same: what the server sends to a page
 * that comes late is the changes that lead to its own state.
 *
 * Bounded: 200,000 rows a run (thinned beyond), 10,000 samples or a million tokens of them, and the last few hundred of everything else.
 */
export class DashboardState {
  readonly runs = new Map<string, RunState>();
  readonly samples = new Ring<DashboardSample>(10_000, weightOf, PIECES_KEPT);
  events = new EventState();
  title = '';
  budgetBytes = 0;
  /** How far the server's clock is ahead of ours. */
  aheadMs = 0;
  /** Whether everything there was has come; false from a reset until then. */
  whole = false;
  /** Goes up with every change, so that one can tell whether there is something new. */
  version = 0;

  receive(message: DashboardMessage, nowMs: number): this {
    this.aheadMs = message.nowMs - nowMs;
    if (message.type === 'reset') {
      this.clear();
      this.title = message.title;
      this.budgetBytes = message.budgetBytes;
    } else {
      for (const change of message.changes) this.apply(change);
    }
    return this;
  }

  apply(change: Change): void {
    this.version++;
    switch (change.kind) {
      case 'run': {
        const run = this.#run(change.run);
        if (change.fresh === true) {
          run.series.clear();
          run.checkpoints.clear();
        }
        run.status = change.status;
        run.message = change.message;
        return;
      }
      case 'steps': {
        this.#run(change.run).series.appendAll(change.index, change.columns);
        return;
      }
      case 'rows': {
        const columns = Object.entries(change.columns).map(([name, packed]) => [name, unpackColumn(packed)] as const);
        this.#run(change.run).series.appendAll(change.index, Object.fromEntries(columns));
        return;
      }
      case 'values':
        this.#run(change.run).series.set(change.index, change.values);
        return;
      case 'checkpoint': {
        const { checkpoints } = this.#run(change.run);
        checkpoints.push({ ...change.checkpoint, ...(change.atMs === undefined ? {} : { atMs: change.atMs }) });
        return;
      }
      case 'sample':
        this.samples.push(change.sample);
        this.events.count(change.sample.atMs, change.sample.length);
        return;
      case 'event':
        this.events.apply(change.event);
        return;
      case 'standing':
        this.events = new EventState();
        this.events.restore(change.standing);
        this.whole = true;
    }
  }

  /**
   * The changes that lead from nothing to this state as it is now. They are made as they are asked for; what happens to
   * the state meanwhile is not among them.
   */
  changes(): Iterable<Change> {
    const runs = [...this.runs.values()].map(({ name, status, message, series, checkpoints }) => ({
      run: name,
      series: series.copy(),
      checkpoints: checkpoints.toArray(),
      state: { kind: 'run' as const, run: name, status, ...(message === undefined ? {} : { message }) },
    }));
    return changesTo(runs, this.samples.toArray(), this.events.standing());
  }

  clear(): void {
    this.version++;
    this.whole = false;
    this.runs.clear();
    this.samples.clear();
    this.events = new EventState();
  }

  #run(name: string): RunState {
    const there = this.runs.get(name);
    if (there !== undefined) return there;
    const run = new RunState(name);
    this.runs.set(name, run);
    return run;
  }
}

type StandingRun = Pick<RunState, 'series'> & {
  readonly run: string;
  readonly state: Change;
  readonly checkpoints: readonly (Checkpoint & { readonly atMs?: number })[];
};

function* changesTo(
  runs: readonly StandingRun[],
  samples: readonly DashboardSample[],
  standing: Standing,
): Iterable<Change> {
  for (const { run, series, checkpoints, state } of runs) {
    yield state;
    for (let from = 0; from < series.length; from += ROWS_A_CHANGE) {
      const to = Math.min(series.length, from + ROWS_A_CHANGE);
      const columns = series.names.flatMap((name) => {
        const packed = packColumn(series.column(name)!.subarray(from, to));
        return packed === undefined ? [] : [[name, packed] as const];
      });
      yield {
        kind: 'rows',
        run,
        index: Array.from(series.index.subarray(from, to)),
        columns: Object.fromEntries(columns),
      };
    }
    for (const { atMs, ...checkpoint } of checkpoints) {
      yield { kind: 'checkpoint', run, checkpoint, ...(atMs === undefined ? {} : { atMs }) };
    }
  }
  for (const sample of samples) yield { kind: 'sample', sample };
  // Last: it stands for all events so far, the counting of the samples above included.
  yield { kind: 'standing', standing };
}
