import {
  bufferCount,
  concat,
  concatMap,
  defer,
  filter,
  from,
  map,
  merge,
  mergeMap,
  NEVER,
  Observable,
  of,
  type OperatorFunction,
  range,
  repeat,
  scan,
  skip,
  startWith,
  Subject,
  switchMap,
  tap,
  share,
} from 'rxjs';
import { describe, expect, it } from 'vitest';
import { batch } from '../../src/operators/data/batch.js';
import { concatMapAhead } from '../../src/operators/flow/concatMapAhead.js';
import { currentGate, Gate, withGate } from '../../src/operators/pressure/gate.js';
import { interleave } from '../../src/operators/data/interleave.js';
import { keepGate } from '../../src/operators/pressure/keepGate.js';
import { mergeMapWeighted } from '../../src/operators/flow/mergeMapWeighted.js';
import { repeatEpochs } from '../../src/operators/data/repeatEpochs.js';
import { retryBackoff } from '../../src/operators/flow/retryBackoff.js';
import { shuffle } from '../../src/operators/data/shuffle.js';
import { gated } from './gated.js';
import { marbles } from './marbles.js';

/** A slow service: each call waits until it is told to finish. */
function slowService() {
  const calls: Subject<unknown>[] = [];
  const project = (value: unknown) => {
    const call = new Subject<unknown>();
    calls.push(call);
    return concat(call, of(value));
  };
  return { calls, project, finish: (count: number) => calls.splice(0, count).forEach((call) => call.complete()) };
}

/** How many rows a source has sent through `between` into an operator with room for two, before and after one is done. */
function demand(between: OperatorFunction<number, unknown>, bounded: 'concat' | 'merge' = 'concat') {
  const { source, sent } = gated();
  const service = slowService();
  const operator =
    bounded === 'concat'
      ? concatMapAhead(service.project, { ahead: 1 })
      : mergeMapWeighted(service.project, { weight: () => 1, budget: 1 });
  source.pipe(between, operator).subscribe();
  const before = sent();
  service.finish(1);
  return [before, sent()];
}

describe('Gate', () => {
  it('is open at first, and calls at once', () => {
    const calls: string[] = [];
    const gate = new Gate();
    gate.onceOpen(() => calls.push('a'));
    expect([gate.isOpen, calls]).toStrictEqual([true, ['a']]);
  });

  it('serves those who wait first come, first served, once each, and only while it stays open', () => {
    const calls: string[] = [];
    const gate = new Gate();
    gate.set(false);
    gate.onceOpen(() => calls.push('a'));
    gate.onceOpen(() => {
      calls.push('b');
      gate.set(false);
    });
    gate.onceOpen(() => calls.push('c'));
    gate.set(true);
    expect(calls).toStrictEqual(['a', 'b']);
    gate.set(true);
    gate.set(true);
    expect(calls).toStrictEqual(['a', 'b', 'c']);
  });

  it('forgets those who stop waiting', () => {
    const calls: string[] = [];
    const gate = new Gate();
    gate.set(false);
    const stop = gate.onceOpen(() => calls.push('a'));
    gate.onceOpen(() => calls.push('b'));
    stop();
    stop();
    gate.set(true);
    expect(calls).toStrictEqual(['b']);
  });

  it('is closed while its parent is, and follows it', () => {
    const calls: string[] = [];
    const parent = new Gate();
    const gate = new Gate(parent);
    parent.set(false);
    expect(gate.isOpen).toBe(false);
    gate.set(false);
    gate.onceOpen(() => calls.push('a'));
    gate.set(true);
    expect(calls).toStrictEqual([]);
    gate.onceOpen(() => calls.push('b'))();
    parent.set(true);
    expect([gate.isOpen, calls]).toStrictEqual([true, ['a']]);
  });

  it('is current inside withGate only, also when that throws', () => {
    const gate = new Gate();
    expect(withGate(gate, () => withGate(undefined, currentGate))).toBeUndefined();
    expect(withGate(gate, currentGate)).toBe(gate);
    expect(() =>
      withGate(gate, () => {
        throw new Error('no');
      }),
    ).toThrow('no');
    expect(currentGate()).toBeUndefined();
  });
});

describe('backpressure', () => {
  it.each<[string, OperatorFunction<number, unknown>, number[]]>([
    ['nothing', map((row) => row), [2, 3]],
    ['map', map((row) => row + 1), [2, 3]],
    // Half the rows are dropped, and the gate only closes when the second call is made.
    ['filter', filter((row) => row % 2 === 1), [4, 6]],
    ['bufferCount', bufferCount(10), [20, 30]],
    ['batch', batch({ size: 10 }), [20, 30]],
    [
      'scan, tap, startWith, skip',
      (rows) =>
        rows.pipe(
          scan((a, b) => a + b),
          tap(),
          startWith(0),
          skip(1),
        ),
      [2, 3],
    ],
    ['mergeMap', mergeMap((row) => of(row)), [2, 3]],
    [
      'concatMap and switchMap',
      (rows) =>
        rows.pipe(
          concatMap((row) => [row]),
          switchMap((row) => of(row)),
        ),
      [2, 3],
    ],
    ['shuffle, which holds its window', shuffle({ window: 100, seed: 1 }), [102, 103]],
    ['interleave', (rows) => interleave([{ source: rows }], { prefetch: 4 }), [6, 7]],
    ['retryBackoff and repeatEpochs', (rows) => rows.pipe(retryBackoff(), repeatEpochs()), [2, 3]],
    ['an operator written by hand', (rows) => new Observable((out) => rows.subscribe((row) => out.next(row))), [2, 3]],
  ])('reaches the source through %s', (_, between, expected) => {
    expect(demand(between)).toStrictEqual(expected);
    expect(demand(between, 'merge')).toStrictEqual(expected);
  });

  it('reaches sources that start when the one before has ended', () => {
    const parts = [gated(3), gated(3), gated(3)];
    const service = slowService();
    from(parts)
      .pipe(
        concatMap(({ source }) => source),
        concatMapAhead(service.project, { ahead: 0 }),
      )
      .subscribe();
    const sent = () => parts.map((part) => part.sent());
    expect(sent()).toStrictEqual([1, 0, 0]);
    service.finish(1);
    service.finish(1);
    expect(sent()).toStrictEqual([3, 0, 0]);
    service.finish(1);
    expect(sent()).toStrictEqual([3, 1, 0]);
    for (let call = 0; call < 4; call++) service.finish(1);
    expect(sent()).toStrictEqual([3, 3, 2]);
  });

  it('reaches every one of merged sources, and serves them in turns', () => {
    const parts = [gated(), gated()];
    const service = slowService();
    merge(...parts.map(({ source }) => source))
      .pipe(concatMapAhead(service.project, { ahead: 0 }))
      .subscribe();
    for (let call = 0; call < 9; call++) service.finish(1);
    expect(parts.map((part) => part.sent())).toStrictEqual([1 + 5, 4]);
  });

  it('reaches an inner source that a value of another gated source brings', () => {
    const outer = gated();
    const inner = gated(3);
    const service = slowService();
    outer.source
      .pipe(
        concatMap(() => inner.source),
        mergeMapWeighted(service.project, { weight: () => 1, budget: 0 }),
      )
      .subscribe();
    expect(inner.sent()).toBe(1);
    service.finish(1);
    expect(inner.sent()).toBe(2);
  });

  it('passes from one bounded operator to the one before it', () => {
    const { source, sent } = gated();
    const sampling = slowService();
    const training = slowService();
    source
      .pipe(
        mergeMapWeighted(sampling.project, { weight: () => 1, budget: 3 }),
        batch({ size: 2 }),
        concatMapAhead(training.project, { ahead: 0 }),
      )
      .subscribe();
    expect(sent()).toBe(4);
    sampling.finish(2);
    // The second sample made a batch, and training is full: nothing takes that sample's place.
    expect([training.calls.length, sampling.calls.length, sent()]).toStrictEqual([1, 3, 5]);
    training.finish(1);
    expect([sampling.calls.length, sent()]).toStrictEqual([4, 6]);
  });

  it('does not reach what a bounded operator itself starts: that would wait for its own end', () => {
    const { source } = gated();
    const inner = gated(50);
    let seen = 0;
    source
      .pipe(concatMapAhead(() => inner.source, { ahead: 0 }))
      .subscribe({ next: () => seen++ })
      .unsubscribe();
    expect(seen).toBe(10_000 * 50);
  });

  it(
    'reaches a source that is retried or repeated after a wait',
    marbles((m) => {
      const { source, sent } = gated(4);
      let attempts = 0;
      const flaky = defer(() => (attempts++ === 0 ? m.cold<number>('-#', undefined, { retryable: true }) : source));
      const result = flaky.pipe(
        retryBackoff({ initialMs: 2, jitter: 0 }),
        concatMapAhead(() => NEVER, { ahead: 1 }),
        tap({ finalize: () => expect(sent()).toBe(2) }),
      );
      m.expect(result, '-----!').toBeObservable('-----');
    }),
  );

  it(
    'is carried over a wait by keepGate, and not without',
    marbles((m) => {
      const [kept, lost] = [gated(100), gated(100)];
      const bounded = concatMapAhead((_: number) => NEVER, { ahead: 1 });
      const wait = m.cold('    --a|');
      const unsub = '          ----!';
      const expected = '       -----';
      const keeps = wait.pipe(
        keepGate(),
        concatMap(() => kept.source),
        bounded,
      );
      const loses = wait.pipe(
        concatMap(() => lost.source),
        bounded,
      );
      m.expect(keeps.pipe(tap({ finalize: () => expect(kept.sent()).toBe(2) })), unsub).toBeObservable(expected);
      m.expect(loses.pipe(tap({ finalize: () => expect(lost.sent()).toBe(100) })), unsub).toBeObservable(expected);
    }),
  );

  it('reaches through repeat', () => {
    const { source, sent } = gated();
    const service = slowService();
    source.pipe(repeat(2), concatMapAhead(service.project, { ahead: 3 })).subscribe();
    expect(sent()).toBe(4);
  });

  it('goes to the first subscriber of a shared source', () => {
    const { source, sent } = gated();
    const shared = source.pipe(share());
    const service = slowService();
    const seen: number[] = [];
    shared.pipe(concatMapAhead(service.project, { ahead: 3 })).subscribe();
    shared.subscribe((row) => seen.push(row));
    expect(sent()).toBe(4);
    service.finish(2);
    expect([sent(), seen]).toStrictEqual([6, [4, 5]]);
  });

  it('lets a source without a gate run as it likes', () => {
    const seen: number[] = [];
    gated(5).source.subscribe((row) => seen.push(row));
    expect(seen).toStrictEqual([0, 1, 2, 3, 4]);
    const service = slowService();
    range(0, 5)
      .pipe(concatMapAhead(service.project, { ahead: 0 }))
      .subscribe();
    expect(service.calls).toHaveLength(1);
  });

  it('stops waiting when unsubscribed', () => {
    const { source, sent } = gated();
    const service = slowService();
    const subscription = source.pipe(concatMapAhead(service.project, { ahead: 0 })).subscribe();
    subscription.unsubscribe();
    service.finish(1);
    expect(sent()).toBe(1);
  });
});
