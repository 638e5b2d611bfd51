import { filter, firstValueFrom, Observable, Subject, take, timeout } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Dashboard, type DashboardState, foldDashboard, fromDashboard, serveDashboard } from 'tinker-rx/dashboard';
import type { FlowReport } from 'tinker-rx/operators';
import { layOutFlow } from '../../../src/dashboard/page/pipeline/layOutFlow.js';

const report = (id: number, into: readonly number[] = [], more: Partial<FlowReport> = {}): FlowReport => ({
  ...{ id, name: `operator ${id}`, into, itemsIn: 10, itemsOut: 9, waiting: 1, busyShare: 0, gatedShare: 0 },
  ended: false,
  ...more,
});

const open: Dashboard[] = [];
afterEach(() => Promise.all(open.splice(0).map((dashboard) => dashboard.close())));

describe('what the named operators do', () => {
  it('is asked for while a page is open, and only then; a page that comes late has the newest report', async () => {
    const reports = new Subject<readonly FlowReport[]>();
    let watching = 0;
    const flow$ = new Observable<readonly FlowReport[]>((subscriber) => {
      watching++;
      subscriber.add(() => watching--);
      return reports.subscribe(subscriber);
    });
    const dashboard = await serveDashboard({ flow$ });
    open.push(dashboard);
    expect(watching).toBe(0);
    const state$ = fromDashboard(dashboard.url).pipe(foldDashboard());
    const states: DashboardState[] = [];
    const [first, second] = [state$.subscribe((state) => states.push(state)), state$.subscribe()];
    await vi.waitFor(() => expect(dashboard.clients).toBe(2), 240_000);
    expect(watching).toBe(1);
    const busy = [report(2), report(1, [2], { name: 'judge', busyShare: 0.9, waiting: 7 })];
    reports.next(busy);
    await vi.waitFor(() => expect(states.at(-1)!.flow).toStrictEqual({ reports: busy, bottleneck: 1 }), 240_000);
    const late = firstValueFrom(
      state$.pipe(
        filter(({ flow }) => flow !== undefined),
        take(1),
        timeout(5000),
      ),
    );
    expect((await late).flow!.bottleneck).toBe(1);
    first.unsubscribe();
    second.unsubscribe();
    await vi.waitFor(() => expect(watching).toBe(0), 240_000);
  });
});

describe('the picture of a pipeline', () => {
  const places = (reports: readonly FlowReport[]) =>
    Object.fromEntries([...layOutFlow(reports)].map(([id, { column, row }]) => [id, `${column},${row}`]));

  it('is a row from the source to the end, and a row for each further pipeline', () => {
    expect(places([report(3), report(2, [3]), report(1, [2]), report(4)])).toStrictEqual({
      ...{ 1: '0,0', 2: '1,0', 3: '2,0' },
      4: '0,1',
    });
  });

  it('has a row for each branch, and what branches meet in right of all of them', () => {
    expect(places([report(5), report(4, [5]), report(3, [4]), report(2, [5]), report(1, [2, 3])])).toStrictEqual({
      ...{ 1: '0,0', 2: '1,0', 3: '1,1', 4: '2,1' },
      5: '3,0',
    });
  });

  it('leaves out targets that have ended, and ends for operators that send to each other', () => {
    expect(places([report(1, [9])])).toStrictEqual({ 1: '0,0' });
    expect(Object.keys(places([report(1, [2]), report(2, [3]), report(3, [2])]))).toHaveLength(3);
  });
});
