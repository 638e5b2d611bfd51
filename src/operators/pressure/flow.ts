import { asyncScheduler, defer, EMPTY, finalize, interval, map, type Observable, share, switchMap } from 'rxjs';
import { meters, running$, watched$ } from './shared/FlowMeter.js';

/** What one operator of a running pipeline does: counts since watching began, shares since the report before. */
export interface FlowReport {
  /** Counted from 1 in this process. Each subscription has its own, so two trainers of one name have two. */
  readonly id: number;
  /** What `named` was given. */
  readonly name: string;
  /** The `id` of each named operator that its values go to; empty for the last of a pipeline. */
  readonly into: readonly number[];
  /** How many values it was sent. */
  readonly itemsIn: number;
  /** How many values it emitted. */
  readonly itemsOut: number;
  /** How many values are queued in it, because it has no room for them yet. */
  readonly waiting: number;
  /**
   * The share of time in which it held up its source, 0 to 1: it was full, or its own code ran, while the operators
   * downstream had room. High for the bottleneck.
   */
  readonly busyShare: number;
  /** The share of time in which an operator downstream was full, so that it had to wait, 0 to 1. The rest was idle. */
  readonly gatedShare: number;
  /** Whether it has completed, failed or been unsubscribed. An operator that has ended is reported once more. */
  readonly ended: boolean;
}

const REPORT_MS = 1000;
/** How often gates are looked at. */
const LOOK_MS = 50;

/**
 * What every {@link named} operator of this process does, once a second while any of them runs: items in and out, waiting, the
 * shares of time in which it was busy or gated.
 *
 * ```ts
 * flow$.subscribe((reports) => console.log(findBottleneck(reports)?.name, reports));
 * ```
 * Operators are in the order in which they were subscribed to: the last of a pipeline first. Nothing is counted while nobody is
 * subscribed; counts begin at the first subscribe. Shares are samples of the gates, taken 20 times a second. Never fails and
 * never completes.
 *
 * @see docs/backpressure.md
 */
export const flow$: Observable<readonly FlowReport[]> = defer(() => {
  watched$.next(true);
  return running$.pipe(
    switchMap((running) => (running ? looks() : lastReport())),
    finalize(() => {
      watched$.next(false);
      forgetEnded();
    }),
  );
}).pipe(share());

/** Looks at the gates, and reports after every n looks. */
function looks(): Observable<readonly FlowReport[]> {
  return defer(() => {
    let lastMs = asyncScheduler.now();
    return interval(LOOK_MS).pipe(
      switchMap((count) => {
        const nowMs = asyncScheduler.now();
        for (const meter of meters) if (!meter.ended) meter.look(nowMs - lastMs);
        lastMs = nowMs;
        return (count + 1) % (REPORT_MS / LOOK_MS) === 0 ? [reports()] : EMPTY;
      }),
    );
  });
}

const lastReport = () => defer(() => (meters.size > 0 ? [undefined] : EMPTY)).pipe(map(() => reports()));

function reports(): readonly FlowReport[] {
  const all = Array.from(meters, (meter) => meter.report());
  forgetEnded();
  return all;
}

function forgetEnded(): void {
  for (const meter of meters) if (meter.ended) meters.delete(meter);
}

/**
 * The operator that holds the pipeline up: the busiest one that runs, if it was busy at least half of the time.
 *
 * ```ts
 * flow$.pipe(map(findBottleneck)).subscribe((slow) => console.log(slow === undefined ? 'none' : slow.name));
 * ```
 */
export function findBottleneck(reports: readonly FlowReport[]): FlowReport | undefined {
  return reports
    .filter(({ busyShare, ended }) => busyShare >= 0.5 && !ended)
    .reduce<FlowReport | undefined>((most, each) => (each.busyShare > (most?.busyShare ?? 0) ? each : most), undefined);
}
