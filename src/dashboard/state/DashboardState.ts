import type { Checkpoint } from '../../operators/training/trainingBatch.js';
import type { Change, DashboardMessage, DashboardSample, Flow, RunStatus } from './changes.js';
import { EventState } from './EventState.js';
import { Groups } from './Groups.js';
import { Ring } from './Ring.js';
import { rowsOf } from './rows.js';
import { Series } from './Series.js';

const SAMPLES_A_BLOCK = 200;
const QUIET_MS = 60_000;
const QUIET_STEPS = 10;
/** Of all samples together: long ones are fewer. */
export const PIECES_KEPT = 1_000_000;
/** What a sample takes of that. */
export const weightOf = (sample: DashboardSample): number => sample.pieces.length + sample.prompt.length / 10;

/** One run: its curves, and what was saved of it. */
export class RunState {
  /** Its metrics by step. */
  readonly series = new Series();
  /** Its checkpoints: the last 2,000. */
  readonly checkpoints = new Ring<Checkpoint & { readonly atMs?: number | undefined }>(2000);
  /** Whether it is running, finished, failed, or read from a log. */
  status: RunStatus = 'running';
  /** Why it failed, if it did. */
  message: string | undefined;
  /** What it was started with, if that is known. */
  config: unknown;

  constructor(
    /** The run's name. */
    readonly name: string,
  ) {}

  /** Whether it makes no more steps. A log does not say so: it ended if no step came for a minute and for ten times as long as a step takes. */
  hasEnded(nowMs: number): boolean {
    if (this.status !== 'logged') return this.status !== 'running';
    const quietMs = Math.max(QUIET_MS, QUIET_STEPS * (this.series.last('durationMs') ?? 0));
    return nowMs - (this.series.last('atMs') ?? 0) > quietMs;
  }
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
  /** What the named operators do; undefined before any of them runs. */
  flow: Flow | undefined;
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
        run.config = change.config ?? run.config;
        return;
      }
      case 'steps':
        this.#run(change.run).series.appendAll(change.index, change.columns);
        return;
      case 'values':
        this.#run(change.run).series.set(change.index, change.values);
        return;
      case 'checkpoint':
        this.#run(change.run).checkpoints.push({ ...change.checkpoint, atMs: change.atMs });
        return;
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
      case 'flow':
        this.flow = change.flow;
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
    const runs = Array.from(this.runs.values(), ({ name: run, status, message, config, series, checkpoints }) => ({
      state: { kind: 'run' as const, run, status, message, config },
      series: series.copy(),
      checkpoints: checkpoints.toArray(),
    }));
    const [groups, samples] = [this.groups.toArray(), this.samples.toArray()];
    const standing = this.events.standing();
    return (function* (): Iterable<Change> {
      for (const { state, series, checkpoints } of runs) {
        const { run } = state;
        yield state;
        for (const rows of rowsOf(series)) yield { kind: 'steps', run, ...rows };
        for (const { atMs, ...checkpoint } of checkpoints) yield { kind: 'checkpoint', run, checkpoint, atMs };
      }
      for (const group of groups) yield { kind: 'group', group };
      for (let from = 0; from < samples.length; from += SAMPLES_A_BLOCK)
        yield { kind: 'samples', samples: samples.slice(from, from + SAMPLES_A_BLOCK) };
      // Last: it says that everything is there.
      yield { kind: 'standing', standing };
    })();
  }

  /** Forgets everything. */
  clear(): void {
    this.version++;
    this.whole = false;
    this.runs.clear();
    this.samples.clear();
    this.groups.clear();
    this.flow = undefined;
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
