import {
  asyncScheduler,
  defer,
  EMPTY,
  interval,
  type MonoTypeOperatorFunction,
  type Observable,
  type SchedulerLike,
  tap,
} from 'rxjs';
import { checkPositive } from '../support/checks.js';
import type { TinkerEvent } from '../client/events.js';
import type { SourceEvent } from '../sources/RowOptions.js';
import { barLine, plainLine, type ProgressState, short } from '../support/terminal/progressLine.js';
import { waitingFor } from './waiting/waitingFor.js';

/** Where a bar is drawn: `process.stderr`, or anything like it. */
export interface ProgressStream {
  /** Writes text, as `process.stderr.write` does. */
  write(text: string): unknown;
  /** Whether it is a terminal. Default false: plain lines instead of a bar. */
  readonly isTTY?: boolean | undefined;
  /** Width of the terminal in characters. Default 80. */
  readonly columns?: number | undefined;
}

/** Options of `progressBar`. */
export interface ProgressBarOptions<T> {
  /** How many values there will be in all; makes a bar and a time left. Default: not known. */
  readonly total?: number;
  /** Stands before the line. Default 'train'. */
  readonly label?: string;
  /** What one value is. Default 'step'. */
  readonly unit?: string;
  /** What to show of the latest value. Default: its `loss`, if it has one. */
  readonly detail?: (value: T) => string;
  /**
   * What the source of the data reports: shown until the first value is there. The share of bytes read makes the bar if there is
   * no `total`.
   */
  readonly source$?: Observable<SourceEvent>;
  /** The service's `events$`: what it is waiting for, and why, is shown. */
  readonly events$?: Observable<TinkerEvent>;
  /** What the run costs (`trackCost` of `tinker-rx/evals`): shown. */
  readonly cost$?: Observable<{ readonly tokens: number; readonly usd: number | undefined }>;
  /** Default `process.stderr`. */
  readonly stream?: ProgressStream;
  /** How often a line is written if the stream is no terminal: > 0. Default 10 000. */
  readonly lineEveryMs?: number;
  /** Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

const REDRAW_MS = 100;
/** Over how many values the rate is taken. */
const RATE_WINDOW = 30;

/**
 * Draws how far a stream is, and passes its values on.
 *
 * ```
 * train  ████████░░░░░░░░░░░░░░░░  34 %  340/1000 steps  4.2 steps/s  2:37 left  loss 0.8123
 * ```
 * On a terminal one line is redrawn, at most ten times a second; elsewhere a plain line is written now and then, and at
 * the end. Values with an `index` count by it, so that a resumed run shows where it stands. Errors and completion pass,
 * after the line is ended. Drawing never delays a value. Holds the times of the last 30 values.
 */
export function progressBar<T>({
  total,
  label = 'train',
  unit = 'step',
  detail = lossOf,
  source$ = EMPTY,
  events$ = EMPTY,
  cost$ = EMPTY,
  stream = process.stderr,
  lineEveryMs = 10_000,
  scheduler = asyncScheduler,
}: ProgressBarOptions<T> = {}): MonoTypeOperatorFunction<T> {
  if (total !== undefined && !(total >= 0)) throw new RangeError(`total must be >= 0, got ${total}`);
  checkPositive({ lineEveryMs });
  const terminal = stream.isTTY === true;
  return (source) =>
    defer(() => {
      const startedMs = scheduler.now();
      const times: { readonly atMs: number; readonly done: number }[] = [];
      let done = 0;
      let latest = '';
      let reading = '';
      let share: number | undefined;
      let waiting: string | undefined;
      let cost: string | undefined;
      let changed = true;
      let drawn = '';

      const state = (): ProgressState => {
        const nowMs = scheduler.now();
        const [first, last] = [times[0], times.at(-1)];
        const spanMs = first === undefined || last === undefined ? 0 : last.atMs - first.atMs;
        const perSecond = spanMs > 0 ? ((last!.done - first!.done) * 1000) / spanMs : undefined;
        const fraction = total === undefined ? share : total === 0 ? 1 : Math.min(1, done / total);
        const remainingMs =
          total !== undefined
            ? perSecond && ((total - done) * 1000) / perSecond
            : share && ((nowMs - startedMs) * (1 - share)) / share;
        const elapsedMs = nowMs - startedMs;
        const told = times.length === 0 ? reading : latest;
        return { label, unit, done, total, fraction, perSecond, remainingMs, elapsedMs, detail: told, cost, waiting };
      };
      const draw = () => {
        if (!changed) return;
        changed = false;
        const line = terminal ? barLine(state(), (stream.columns ?? 80) - 1) : plainLine(state());
        if (line === drawn) return;
        drawn = line;
        // Clearing to the end of the line after it, not the whole line before, does not flicker.
        stream.write(terminal ? `\r${line}\u001b[K` : `${line}\n`);
      };

      const ticks = interval(terminal ? REDRAW_MS : lineEveryMs, scheduler).subscribe(draw);
      // The time left changes also when nothing comes.
      if (terminal) ticks.add(interval(1000, scheduler).subscribe(() => (changed = true)));
      ticks.add(
        events$.subscribe({
          next: (event) => {
            waiting = waitingFor(event, waiting);
            changed = true;
          },
          error: () => {},
        }),
      );
      ticks.add(
        source$.subscribe({
          next: (event) => {
            if (event.type !== 'source-progress') return;
            reading = `${event.rows} ${event.rows === 1 ? 'row' : 'rows'} read`;
            if (event.totalBytes! > 0) share = event.done ? 1 : event.bytes / event.totalBytes!;
            changed = true;
          },
          // What fails here fails the data too, or does not matter: a line of progress is not where to tell it.
          error: () => {},
        }),
      );
      ticks.add(
        cost$.subscribe({
          next: ({ tokens, usd }) => {
            cost =
              tokens === 0
                ? undefined
                : usd === undefined
                  ? `${short(tokens)} tokens`
                  : `$${usd.toFixed(usd < 10 ? 4 : 2)}`;
            changed = true;
          },
          error: () => {},
        }),
      );
      const end = () => {
        ticks.unsubscribe();
        changed = true;
        draw();
        if (terminal) stream.write('\n');
      };
      return source.pipe(
        tap((value) => {
          const { index } = value as { readonly index?: unknown };
          done = typeof index === 'number' ? index + 1 : done + 1;
          times.push({ atMs: scheduler.now(), done });
          if (times.length > RATE_WINDOW) times.shift();
          latest = detail(value);
          waiting = undefined;
          changed = true;
        }),
        tap({ error: end, complete: end, unsubscribe: end }),
      );
    });
}

function lossOf(value: unknown): string {
  const { loss } = value as { readonly loss?: unknown };
  return typeof loss === 'number' ? `loss ${loss.toFixed(4)}` : '';
}
