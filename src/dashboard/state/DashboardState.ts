import type { Checkpoint } from '../../operators/trainingBatch.js';
import type { Change, DashboardGroup, DashboardMessage, DashboardSample, RunStatus } from './changes.js';
import { EventState } from './EventState.js';
import { Groups } from './Groups.js';
import { Ring } from './Ring.js';
import { rowsOf } from './rows.js';
import { Series } from './Series.js';

const SAMPLES_A_BLOCK = 200;
/** Of all samples together: long ones are fewer. */
export const PIECES_KEPT = 1_000_000;
/** What a sample takes of that. */
export const weightOf = (sample: DashboardSample): number => sample.pieces.length + sample.prompt.length / 10;

/** One run: its curves, and what was saved of it. */
export class RunState {
  /** Its metrics by step. */
  readonly series = new Series();
  /** Its checkpoints: the last 2,000. */
  readonly checkpoints = new Ring<Checkpoint & { readonly atMs?: number }>(2000);
  /** Whether it is running, finished, failed, or read from a log. */
  status: RunStatus = 'running';
  /** Why it failed, if it did. */
  message: string | undefined;

  constructor(
    /** The run's name. */
    readonly name: string,
  ) {}
}

/**
 * Everything a dashboard shows, folded from changes. Server and page hold the same: what the server sends to a page
 * that comes late is the changes that lead to its own state.
 *
 * Bounded: 200,000 rows per run (thinned beyond), 10,000 samples or a million tokens of them, 5,000 groups of rollouts or 16 million
 * characters of them, and the last few hundred of everything else.
 */
export class DashboardState {
  /** The runs by name. */
  readonly runs = new Map<string, RunState>();
  /** The last 10,000 samples. */
  readonly samples = new Ring<DashboardSample>(10_000, weightOf, PIECES_KEPT);
  /** The groups of rollouts. */
  readonly groups = new Groups();
  /** What the events have told. */
  events = new EventState();
  /** The page's title. */
  title = '';
  /** How far the server's clock is ahead of ours. */
  aheadMs = 0;
  /** Whether everything there was has come; false from a reset until then. */
  whole = false;
  /** Goes up with every change, so that one can tell whether there is something new. */
  version = 0;

  /** Applies a message of the server. `nowMs` is the reader's own clock. */
  receive(message: DashboardMessage, nowMs: number): this {
    this.aheadMs = message.nowMs - nowMs;
    if (message.type === 'reset') {
      this.clear();
      this.title = message.title;
    } else {
      for (const change of message.changes) this.apply(change);
    }
    return this;
  }

  /** Applies one change. */
  apply(change: Change): void {
    this.version++;
    switch (change.kind) {
      case 'run': {
        const run = this.#run(change.run);
        if (change.fresh === true) {
          run.series.clear();
          run.checkpoints.clear();
          this.groups.forget(change.run);
        }
        run.status = change.status;
        run.message = change.message;
        return;
      }
      case 'steps': {
        this.#run(change.run).series.appendAll(change.index, change.columns);
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
      case 'samples':
        for (const sample of change.samples) this.samples.push(sample);
        return;
      case 'group':
        this.groups.push(change.group);
        return;
      case 'load':
        this.events.setLoad(change.load);
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
    const standing: Change = { kind: 'standing', standing: this.events.standing() };
    return changesTo(runs, this.groups.toArray(), this.samples.toArray(), standing);
  }

  /** Forgets everything. */
  clear(): void {
    this.version++;
    this.whole = false;
    this.runs.clear();
    this.samples.clear();
    this.groups.clear();
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

interface StandingRun {
  readonly run: string;
  readonly state: Change;
  readonly series: Series;
  readonly checkpoints: readonly (Checkpoint & { readonly atMs?: number })[];
}

function* changesTo(
  runs: readonly StandingRun[],
  groups: readonly DashboardGroup[],
  samples: readonly DashboardSample[],
  standing: Change,
): Iterable<Change> {
  for (const { run, series, checkpoints, state } of runs) {
    yield state;
    for (const rows of rowsOf(series)) yield { kind: 'steps', run, ...rows };
    for (const { atMs, ...checkpoint } of checkpoints) {
      yield { kind: 'checkpoint', run, checkpoint, ...(atMs === undefined ? {} : { atMs }) };
    }
  }
  for (const group of groups) yield { kind: 'group', group };
  for (let from = 0; from < samples.length; from += SAMPLES_A_BLOCK)
    yield { kind: 'samples', samples: samples.slice(from, from + SAMPLES_A_BLOCK) };
  // Last: it says that everything is there.
  yield standing;
}
