import fc from 'fast-check';
import {
  catchError,
  count,
  EMPTY,
  identity,
  interval,
  map,
  merge,
  NEVER,
  type Observable,
  of,
  retry,
  Subject,
  switchMap,
  take,
  takeUntil,
  tap,
  timer,
  VirtualTimeScheduler,
} from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { batch } from '../../src/operators/data/batch.js';
import { broadcast } from '../../src/operators/flow/broadcast.js';
import { concatMapAhead } from '../../src/operators/flow/concatMapAhead.js';
import { forgetWarnings } from '../../src/operators/pressure/shared/backpressureEvents.js';
import { backpressure$ } from '../../src/operators/pressure/backpressure.js';
import { findBottleneck, flow$, type FlowReport } from '../../src/operators/pressure/flow.js';
import { named } from '../../src/operators/pressure/named.js';
import { keepsContract, throwing } from './contract.js';
import { gated } from './gated.js';
import { marbles } from './marbles.js';

const said = map(({ pipeline, value }: { pipeline: string; value: unknown }) => `${pipeline}${String(value)}`);
/** A pipeline that never has room for more. */
const stuck = (each: Observable<unknown>) => each.pipe(concatMapAhead(() => NEVER, { ahead: 0 }));

describe('broadcast', () => {
  keepsContract({
    operator: () => broadcast({ x: identity, y: batch({ size: 2 }) }),
    readsForThree: 3,
    throwing: () => broadcast({ x: map(throwing), y: identity }),
  });

  it(
    'sends every value to each pipeline, from one subscription of the source',
    marbles((m) => {
      const source = m.cold('  -a---b---|');
      const subs = '           ^--------!';
      const expected = '       -p---(qr)|';
      const result = source.pipe(broadcast({ x: identity, y: batch({ size: 2 }) }), said);
      m.expect(result).toBeObservable(expected, { p: 'xa', q: 'xb', r: 'ya,b' });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'completes when all pipelines have, and leaves the source when none takes more',
    marbles((m) => {
      const source = m.cold('  -a-b-c-d-|');
      const subs = '           ^--!';
      const expected = '       -p-(qr|)';
      const result = source.pipe(broadcast({ x: take(2), y: (each) => each.pipe(take(2), batch({ size: 2 })) }), said);
      m.expect(result).toBeObservable(expected, { p: 'xa', q: 'xb', r: 'ya,b' });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'goes on without a pipeline that fails, where the pipeline ends its error',
    marbles((m) => {
      const source = m.cold('  -a-b-c-|');
      const expected = '       -p-q-r-|';
      const fails = (each: Observable<string>) =>
        each.pipe(
          map(throwing),
          catchError(() => EMPTY),
        );
      const result = source.pipe(broadcast({ x: identity, y: fails }), said);
      m.expect(result).toBeObservable(expected, { p: 'xa', q: 'xb', r: 'xc' });
    }),
  );

  it(
    'passes an error of the source when every pipeline has taken the values before it',
    marbles((m) => {
      const source = m.cold('  (ab#)');
      const expected = '       (pq)(r#)';
      const slow = concatMapAhead((value: string) => timer(4).pipe(map(() => value)), { ahead: 0 });
      const result = source.pipe(broadcast({ x: identity, y: slow }), said);
      m.expect(result).toBeObservable(expected, { p: 'xa', q: 'xb', r: 'ya' });
    }),
  );

  it('lets the fastest be no more than the buffer ahead of the slowest', () => {
    const { source, sent } = gated();
    let fast = 0;
    const running = source.pipe(broadcast({ fast: tap(() => fast++), stuck }, { buffer: 5 })).subscribe();
    // One in the pipeline that is stuck, five that wait for it.
    expect([sent(), fast]).toStrictEqual([6, 6]);
    running.unsubscribe();
  });

  it('continues without the slowest pipeline when that leaves', () => {
    const { source, sent } = gated(100);
    const leave = new Subject<void>();
    let fast = 0;
    const leaves = (each: Observable<unknown>) => each.pipe(stuck, takeUntil(leave));
    const ended = vi.fn();
    source.pipe(broadcast({ fast: tap(() => fast++), leaves }, { buffer: 5 })).subscribe({ complete: ended });
    expect([sent(), fast]).toStrictEqual([6, 6]);
    leave.next();
    expect([sent(), fast]).toStrictEqual([100, 100]);
    expect(ended).toHaveBeenCalledOnce();
  });

  it('pauses the source while what is downstream of all pipelines is full', () => {
    const { source, sent } = gated();
    source
      .pipe(broadcast({ x: identity, y: identity }, { buffer: 2 }), stuck)
      .subscribe()
      .unsubscribe();
    expect(sent()).toBeLessThanOrEqual(3);
  });

  it('gives every pipeline all values in order, however fast each is', () => {
    const speeds = fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(fc.nat(40), speeds, fc.integer({ min: 1, max: 7 }), (count, delays, buffer) => {
        const scheduler = new VirtualTimeScheduler();
        const taken = delays.map(() => 0);
        let widest = 0;
        const slow = (delayMs: number, place: number) =>
          concatMapAhead(
            (value: number) => {
              taken[place]!++;
              widest = Math.max(widest, Math.max(...taken) - Math.min(...taken));
              return (delayMs === 0 ? of(0) : timer(delayMs, scheduler)).pipe(map(() => value));
            },
            { ahead: 0 },
          );
        const pipelines = Object.fromEntries(delays.map((delayMs, place) => [`p${place}`, slow(delayMs, place)]));
        const seen = new Map<string, number[]>();
        let ended = false;
        gated(count)
          .source.pipe(broadcast(pipelines, { buffer }))
          .subscribe({
            next: ({ pipeline, value }) => seen.set(pipeline, [...(seen.get(pipeline) ?? []), value]),
            complete: () => (ended = true),
          });
        scheduler.flush();
        expect(ended).toBe(true);
        const all = Array.from({ length: count }, (_, value) => value);
        for (const pipeline of Object.keys(pipelines)) expect(seen.get(pipeline) ?? []).toStrictEqual(all);
        expect(widest).toBeLessThanOrEqual(buffer);
      }),
      { numRuns: 300, seed: 31 },
    );
  });

  it(
    'lets the source continue when a pipeline that subscribes late has caught up',
    marbles((m) => {
      const { source, sent } = gated(40);
      const late = (each: Observable<number>) => timer(5).pipe(switchMap(() => each));
      const result = source.pipe(broadcast({ x: identity, late }, { buffer: 4 }), count());
      m.expect(result).toBeObservable('-----(a|)', { a: 80 });
      m.flush();
      expect(sent()).toBe(40);
    }),
  );

  it(
    'gives the error of the source to a pipeline that subscribes after it, or again',
    marbles((m) => {
      const late = (each: Observable<string>) => timer(5).pipe(switchMap(() => each));
      const again = (each: Observable<string>) => each.pipe(retry(1));
      const early = (each: Observable<string>) => each.pipe(catchError(() => EMPTY));
      m.expect(m.cold('-#').pipe(broadcast({ late }))).toBeObservable('-----#');
      m.expect(m.cold('-a#').pipe(broadcast({ again }), said)).toBeObservable('-x#', { x: 'againa' });
      m.expect(m.cold('-#').pipe(broadcast({ late, early }))).toBeObservable('-----#');
    }),
  );

  it('refuses a pipeline that subscribes to its values twice at once, and says what to do', () => {
    const twice = (each: Observable<string>) => merge(each, each);
    const errors: unknown[] = [];
    of('a')
      .pipe(broadcast({ twice }))
      .subscribe({ error: (error: Error) => errors.push(error.message) });
    expect(errors).toStrictEqual([
      'a pipeline of broadcast has subscribed to its values twice at once: put share() before what both read',
    ]);
  });

  it('does not warn of a queue that is within a large buffer', () => {
    forgetWarnings();
    const events: unknown[] = [];
    const watching = backpressure$.subscribe((event) => events.push(event));
    const { source, sent } = gated();
    source
      .pipe(broadcast({ stuck }, { buffer: 1500 }))
      .subscribe()
      .unsubscribe();
    watching.unsubscribe();
    expect([sent(), events]).toStrictEqual([1501, []]);
  });

  it('is part of a named operator around it in flow$', () => {
    vi.useFakeTimers();
    const seen: (readonly FlowReport[])[] = [];
    const watching = flow$.subscribe((reports) => seen.push(reports));
    const running = interval(90)
      .pipe(named('rows'), named('all', broadcast({ x: identity, y: identity })), named('end'))
      .subscribe();
    vi.advanceTimersByTime(1000);
    watching.unsubscribe();
    running.unsubscribe();
    vi.useRealTimers();
    const [end, all, rows] = seen.at(-1)!;
    expect(seen.at(-1)).toHaveLength(3);
    expect(end).toMatchObject({ name: 'end', into: [], itemsIn: 22 });
    expect(all).toMatchObject({ name: 'all', into: [end!.id], itemsIn: 11, itemsOut: 22 });
    expect(rows).toMatchObject({ name: 'rows', into: [all!.id] });
  });

  it('shows in flow$ which pipeline holds the source up', () => {
    vi.useFakeTimers();
    const seen: (readonly FlowReport[])[] = [];
    const watching = flow$.subscribe((reports) => seen.push(reports));
    const slow = concatMapAhead((value: number) => timer(200).pipe(map(() => value)), { ahead: 0 });
    const running = gated()
      .source.pipe(named('rows'), broadcast({ fast: named('fast'), slow: named('slow', slow) }))
      .subscribe();
    vi.advanceTimersByTime(2000);
    watching.unsubscribe();
    running.unsubscribe();
    vi.useRealTimers();
    const last = seen.at(-1)!;
    expect(findBottleneck(last)?.name).toBe('slow');
    const [forked, fast, slowest, rows] = last;
    expect(forked).toMatchObject({ name: 'broadcast', into: [fast!.id, slowest!.id], gatedShare: 1, waiting: 16 });
    expect(rows).toMatchObject({ name: 'rows', into: [forked!.id], gatedShare: 1 });
    expect(fast).toMatchObject({ into: [], busyShare: 0 });
  });

  it.each([0, 1.5, NaN])('refuses buffer %s', (buffer) => {
    expect(() => broadcast({ x: identity }, { buffer })).toThrow(RangeError);
  });

  it('refuses to send values to no pipeline', () => {
    expect(() => broadcast({})).toThrow(new RangeError('broadcast needs at least one pipeline'));
  });
});
