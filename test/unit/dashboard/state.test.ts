import { describe, expect, it } from 'vitest';
import { align, type Change, DashboardState, Ring, Series, smooth } from 'tinker-rx/dashboard';

describe('Series', () => {
  it('keeps columns that come late, with NaN before them', () => {
    const series = new Series();
    series.append({ index: 0, values: { loss: 3 } });
    series.append({ index: 1, values: { loss: 2, reward: 1 } });
    expect([...series.column('reward')!]).toStrictEqual([NaN, 1]);
    expect(series.last('reward')).toBe(1);
  });

  it('takes what a resumed run does again in place of what was', () => {
    const series = new Series();
    for (let index = 0; index < 10; index++) series.append({ index, values: { loss: index } });
    series.append({ index: 4, values: { loss: 40 } });
    expect([...series.index]).toStrictEqual([0, 1, 2, 3, 4]);
    expect(series.last('loss')).toBe(40);
  });

  it('never holds more rows than its cap, and keeps both ends', () => {
    const series = new Series(100);
    for (let index = 0; index < 100_000; index++) series.append({ index, values: { loss: index } });
    expect(series.length).toBeLessThanOrEqual(100);
    expect(series.index[0]).toBe(0);
    expect(series.lastIndex).toBe(99_999);
    expect([...series.column('loss')!]).toStrictEqual([...series.index]);
    expect([...series.index]).toStrictEqual([...series.index].sort((a, b) => a - b));
  });

  it.each([1, 2, 300, 1000])('appends %d rows at once as it appends them one by one', (size) => {
    const [one, many] = [new Series(600), new Series(600)];
    for (let start = 0; start < 2000; start += size) {
      const index = Array.from({ length: size }, (_, row) => start + row);
      for (const at of index) one.append({ index: at, values: { a: at, b: at > 500 ? -at : NaN } });
      many.appendAll(index, { a: index, b: index.map((at) => (at > 500 ? -at : null)) });
    }
    expect(many.index).toStrictEqual(one.index);
    for (const name of ['a', 'b']) expect(many.column(name)).toStrictEqual(one.column(name));
  });

  it('adds to a row that is there, and tells when it is not', () => {
    const series = new Series();
    series.append({ index: 7, values: {} });
    expect(series.set(7, { n: 1 }, 'add')).toBe(true);
    expect(series.set(7, { n: 1 }, 'add')).toBe(true);
    expect(series.last('n')).toBe(2);
    expect(series.set(8, { n: 1 })).toBe(false);
  });
});

describe('align', () => {
  const curve = (x: number[], y: number[]) => ({ x: Float64Array.from(x), y: Float64Array.from(y) });

  it('puts short curves over the union of their places', () => {
    const { x, ys } = align([curve([0, 1, 2], [5, NaN, 7]), curve([1, 3], [8, 9])], 0, 3, 100);
    expect(x).toStrictEqual([0, 1, 2, 3]);
    expect(ys).toStrictEqual([
      [5, null, 7, null],
      [null, 8, null, 9],
    ]);
  });

  it('keeps a spike of one step in 100,000', () => {
    const x = Float64Array.from({ length: 100_000 }, (_, at) => at);
    const y = new Float64Array(100_000).fill(1);
    y[54_321] = 99;
    y[54_322] = -99;
    const { x: places, ys } = align([{ x, y }], 0, 99_999, 500);
    expect(places.length).toBeLessThanOrEqual(500);
    expect(Math.max(...(ys[0] as number[]))).toBe(99);
    expect(Math.min(...(ys[0] as number[]))).toBe(-99);
    expect(ys[0]!.indexOf(99)).toBeLessThan(ys[0]!.indexOf(-99));
  });

  it('shows every step of a part that fits', () => {
    const x = Float64Array.from({ length: 100_000 }, (_, at) => at);
    const { x: places } = align([{ x, y: x }], 500, 510, 500);
    expect(places).toStrictEqual([499, 500, 501, 502, 503, 504, 505, 506, 507, 508, 509, 510, 511]);
  });

  it('has nothing to show of nothing', () => {
    expect(align([], 0, 0, 10)).toStrictEqual({ x: [], ys: [] });
  });

  it('smooths without leaning towards zero at the start', () => {
    expect([...smooth(Float64Array.from([4, 4, NaN, 4]), 0.9)].map((y) => Math.round(y * 1e9) / 1e9)).toStrictEqual([
      4,
      4,
      NaN,
      4,
    ]);
  });
});

describe('what is sent of long runs', () => {
  it('keeps seven digits, whole numbers, large times and gaps', () => {
    const state = new DashboardState();
    const columns = { loss: [1.2345678], atMs: [1_800_000_000_123], none: [null], odd: [7] };
    state.apply({ kind: 'steps', run: 'a', index: [0], columns });
    state.apply({ kind: 'steps', run: 'a', index: [1], columns: { loss: [null], atMs: [1_800_000_000_124] } });
    const copy = new DashboardState();
    for (const change of state.changes()) copy.apply(JSON.parse(JSON.stringify(change)) as Change);
    const { series } = copy.runs.get('a')!;
    expect(series.column('loss')![0]).toBeCloseTo(1.2345678, 6);
    expect([...series.column('atMs')!]).toStrictEqual([1_800_000_000_123, 1_800_000_000_124]);
    expect([...series.column('odd')!]).toStrictEqual([7, NaN]);
    expect(series.names).not.toContain('none');
  });

  it('has every row, some thousand at a time', () => {
    const state = new DashboardState();
    const index = Array.from({ length: 4500 }, (_, row) => row);
    state.apply({ kind: 'steps', run: 'a', index, columns: { loss: index.map((row) => row / 2) } });
    const sent = [...state.changes()].flatMap((change) => (change.kind === 'steps' ? [change] : []));
    expect(sent.map((change) => change.index.length)).toStrictEqual([2000, 2000, 500]);
    expect(sent.flatMap((change) => change.columns['loss'])).toStrictEqual(index.map((row) => row / 2));
  });

  it('is the state at the moment it was asked for', () => {
    const state = new DashboardState();
    for (let index = 0; index < 10; index++) state.apply({ kind: 'steps', run: 'a', index: [index], columns: {} });
    const changes = state.changes();
    state.apply({ kind: 'steps', run: 'a', index: [10], columns: {} });
    state.apply({ kind: 'event', event: { type: 'request-sent', atMs: 1, requestId: 'r' } });
    const copy = new DashboardState();
    for (const change of changes) copy.apply(change);
    expect(copy.runs.get('a')!.series.length).toBe(10);
    expect(copy.events.requests.size).toBe(0);
    expect(copy.events.counts).toStrictEqual({});
  });
});

describe('Ring', () => {
  it('holds the last values only', () => {
    const ring = new Ring<number>(3);
    for (let value = 0; value < 20; value++) ring.push(value);
    expect(ring.toArray()).toStrictEqual([17, 18, 19]);
    expect(ring.at(0)).toBe(17);
    expect(ring.length).toBe(3);
  });

  it('holds fewer values where they are heavy, and always the last', () => {
    const ring = new Ring<number>(10, (value) => value, 100);
    for (const value of [30, 30, 30, 30, 60, 500]) {
      ring.push(value);
      if (value < 500) expect(ring.toArray().reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(100);
    }
    expect(ring.toArray()).toStrictEqual([500]);
    ring.push(1);
    expect(ring.toArray()).toStrictEqual([1]);
  });
});

describe('DashboardState', () => {
  const work = { requestType: 'Sample', requestId: 'r1', target: 's' };
  const event = (type: string, atMs: number, more: object = {}): Change => ({
    kind: 'event',
    event: { type, atMs, ...more },
  });

  it('follows a request from sent to finished, and its bytes', () => {
    const state = new DashboardState();
    state.apply(event('request-sent', 1000, { ...work, bytes: 500 }));
    state.apply(event('queue-state', 2000, { ...work, state: 'paused_capacity', reason: 'busy' }));
    expect([...state.events.requests.values()]).toStrictEqual([
      { ...work, bytes: 500, sinceMs: 1000, state: 'paused_capacity', reason: 'busy' },
    ]);
    expect(state.events.bytesAccepted).toBe(500);
    state.apply(event('request-finished', 3000, work));
    expect(state.events.requests.size).toBe(0);
    expect(state.events.bytesAccepted).toBe(0);
    expect(state.events.clock.last('requests')).toBe(1);
  });

  it('knows which pauses last, and ends a billing pause with the first work the service takes', () => {
    const { events } = new DashboardState();
    events.apply({ type: 'dispatch-paused', atMs: 0, pauseMs: 1000, waiting: 2 });
    events.apply({ type: 'request-retry', atMs: 0, delayMs: 2000, path: 'forward', attempt: 3 });
    events.apply({ type: 'billing-paused', atMs: 500, pausedMs: 500, reason: 'no money' });
    expect(events.pausesAt(900).map(({ kind }) => kind)).toStrictEqual(['sampling', 'backoff', 'billing']);
    expect(events.pausesAt(1500).map(({ kind }) => kind)).toStrictEqual(['backoff', 'billing']);
    events.apply({ type: 'request-sent', atMs: 1600, requestId: 'x' });
    expect(events.pausesAt(1700).map(({ kind }) => kind)).toStrictEqual(['backoff']);
  });

  it('does not take a billing pause for over while something still waits to be taken', () => {
    const { events } = new DashboardState();
    const unsent = [{ requestType: 'OptimStep', target: 'm', count: 1, sinceMs: 0, before: 0 }];
    events.apply({ type: 'billing-paused', atMs: 0, pausedMs: 0, reason: 'no money' });
    events.setLoad({ atMs: 1, calls: 2, unsent, accepted: [] });
    events.apply({ type: 'request-finished', atMs: 2, requestId: 'x' });
    expect(events.pausesAt(3)).toHaveLength(1);
    events.setLoad({ atMs: 4, calls: 1, unsent: [], accepted: [] });
    events.apply({ type: 'request-finished', atMs: 5, requestId: 'y' });
    expect(events.pausesAt(6)).toHaveLength(0);
  });

  it('forgets requests that nobody waits for any more', () => {
    const { events } = new DashboardState();
    events.apply({ type: 'request-sent', atMs: 1, ...work, bytes: 9 });
    events.apply({
      type: 'sample-resubmitted',
      atMs: 2,
      target: 's',
      delayMs: 500,
      error: { code: 'gone', message: 'lost', requestId: 'r1' },
    });
    expect([events.requests.size, events.bytesAccepted]).toStrictEqual([0, 0]);
    events.apply({ type: 'request-sent', atMs: 3, ...work, requestId: 'r2', bytes: 9 });
    events.setLoad({ atMs: 4, calls: 0, unsent: [], accepted: [] });
    expect([events.requests.size, events.bytesAccepted]).toStrictEqual([0, 0]);
  });

  it('names the work of a failure, and does not count what the caller gave up', () => {
    const { events } = new DashboardState();
    events.apply({ type: 'request-sent', atMs: 1, ...work, bytes: 9 });
    events.apply({ type: 'request-failed', atMs: 2, requestId: 'r1', error: { code: 'bad_request', message: 'no' } });
    events.apply({ type: 'request-failed', atMs: 3, requestId: 'r2', error: { code: 'cancelled', message: 'gone' } });
    expect(events.failures.toArray()).toStrictEqual([
      { atMs: 2, code: 'bad_request', message: 'no', what: 'Sample', requestId: 'r1' },
    ]);
  });

  it('is led to by its own changes, through JSON', () => {
    const state = new DashboardState();
    for (let index = 0; index < 3000; index++) {
      state.apply({
        kind: 'steps',
        run: 'a',
        index: [index],
        columns: { loss: [index / 2], odd: [index % 2 ? 1 : null] },
      });
    }
    state.apply({ kind: 'run', run: 'a', status: 'failed', message: 'because' });
    state.apply({ kind: 'values', run: 'a', index: 7, values: { 'eval/x': 3 } });
    const checkpoint = { name: 'c', steps: 3, batches: 3, kept: true, statePath: 'tinker://x' };
    state.apply({ kind: 'checkpoint', run: 'a', checkpoint, atMs: 5 });
    for (let id = 0; id < 60; id++) {
      const sample = { id, atMs: id * 100, prompt: 'p', pieces: ['x'], tokens: [1], logprobs: [-1], length: 1 };
      state.apply({ kind: 'sample', sample });
    }
    state.apply(event('request-sent', 9000, { ...work, bytes: 500 }));
    state.apply(event('dispatch-paused', 9100, { pauseMs: 5, text: 'slow', level: 'info' }));
    state.apply({ kind: 'load', load: { atMs: 9200, calls: 1, unsent: [], accepted: [] } });

    const copy = new DashboardState();
    for (const change of state.changes()) copy.apply(JSON.parse(JSON.stringify(change)) as Change);
    expect([...copy.changes()]).toStrictEqual([...state.changes()]);
    expect(copy.events.bytesAccepted).toBe(500);
    expect(copy.events.load!.calls).toBe(1);
    expect(copy.samples.length).toBe(60);
    expect(copy.runs.get('a')!.series.last('eval/x')).toBe(3);
  });
});
