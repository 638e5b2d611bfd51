import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DashboardSample, Ring } from 'tinker-rx/dashboard';
import { packColumn, unpackColumn } from '../../../src/dashboard/state/packColumn.js';
import { packSamples, sizeOf, textOf, unpackSamples } from '../../../src/dashboard/state/packSamples.js';
import { RowBlocks } from '../../../src/dashboard/state/RowBlocks.js';
import { SampleBlocks } from '../../../src/dashboard/state/SampleBlocks.js';
import { Series } from '../../../src/dashboard/state/Series.js';

const column = (values: readonly (number | null)[]) => Float64Array.from(values, (value) => value ?? NaN);
const roundTrip = (values: readonly (number | null)[], per?: number): number[] => {
  const packed = packColumn(column(values), per);
  return packed === undefined ? [] : [...unpackColumn(packed, values.length)];
};

describe('packColumn', () => {
  it.each([
    ['the same number', [7, 7, 7], 'all'],
    ['whole numbers that lie close', [20_000, 20_254], 'u8'],
    ['those with a gap', [3, null, 4], 'u8'],
    ['whole numbers further apart', [-30_000, 30_000], 'u16'],
    ['times', [1_800_000_000_123, 1_800_086_400_123], 'u32'],
    ['numbers with a point', [0.5, -0.25], 'f32'],
    ['large numbers with a point', [0.5, 2 ** 30], 'f64'],
    ['very small numbers', [1e-40, 1], 'f64'],
    ['whole numbers very far apart', [0, 2 ** 40], 'f64'],
  ])('takes for %s what they need', (_, values, as) => {
    expect(packColumn(column(values))!.as).toBe(as);
    expect(roundTrip(values)).toStrictEqual(values.map((value) => value ?? NaN));
  });

  it('keeps whole numbers, gaps, and seven digits of everything else', () => {
    const value = fc.oneof(
      fc.maxSafeInteger(),
      fc.integer({ min: -300, max: 300 }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.constantFrom(null, NaN, Infinity),
    );
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 40 }), (values) => {
        const back = roundTrip(values);
        const known = (each: number | null): each is number => Number.isFinite(each);
        if (!values.some(known)) return back.length === 0;
        return values.every((each, row) =>
          known(each) ? Math.abs(back[row]! - each) <= Math.abs(each) * 1e-7 : !Number.isFinite(back[row]),
        );
      }),
    );
  });

  it('keeps so many parts of a unit', () => {
    expect(roundTrip([-1.234, -0.0004, null, -20.5], 1000)).toStrictEqual([-1.234, 0, NaN, -20.5]);
  });

  it('packs a long column', () => {
    const long = Array.from({ length: 100_000 }, (_, row) => row / 8);
    expect(roundTrip(long)).toStrictEqual(long);
  });
});

const sample = (id: number, more: Partial<DashboardSample> = {}): DashboardSample => ({
  id,
  atMs: 1000 + id,
  prompt: `p${id}`,
  pieces: ['é', '!', '', ' end'],
  tokens: [[195, 169], 33, 7, 300],
  logprobs: [-0.75, null, -0.001, -12],
  length: 5,
  ...more,
});

describe('packSamples', () => {
  const bare = sample(1, { pieces: ['x'], tokens: [1], reward: 0.3, run: 'r', stopReason: 'stop' });
  delete (bare as { logprobs?: unknown }).logprobs;
  const empty = sample(2, { pieces: [], tokens: [], logprobs: [], length: 0 });
  const samples = [sample(0), bare, empty, sample(3)];

  it('is undone by unpackSamples, through JSON', () => {
    const back = unpackSamples(JSON.parse(JSON.stringify(packSamples(samples))) as ReturnType<typeof packSamples>);
    back.forEach((each, place) => expect(each).toMatchObject(samples[place]!));
    expect(back[1]!.logprobs).toBeUndefined();
    expect(back[0]!.reward).toBeUndefined();
    expect(packSamples(back)).toStrictEqual(packSamples(samples));
  });

  it('tells size and text without unpacking', () => {
    const [first] = unpackSamples(packSamples(samples));
    expect([sizeOf(first!), textOf(first!)]).toStrictEqual([4, 'é! end']);
    expect([sizeOf(samples[0]!), textOf(samples[0]!)]).toStrictEqual([4, 'é! end']);
  });

  it('packs samples of which none has a piece', () => {
    expect(unpackSamples(packSamples([empty]))[0]).toMatchObject(empty);
    expect(unpackSamples(packSamples([]))).toStrictEqual([]);
  });
});

describe('SampleBlocks', () => {
  it('makes a full block once, and one that has lost its first samples anew', () => {
    const blocks = new SampleBlocks();
    const all = Array.from({ length: 450 }, (_, id) => sample(id));
    const sizes = (from: number) => [...blocks.changes(all.slice(from))].map(({ samples }) => samples.facts.length);
    expect(sizes(0)).toStrictEqual([200, 200, 50]);
    expect([...blocks.changes(all)][1]).toBe([...blocks.changes(all)][1]);
    expect(sizes(70)).toStrictEqual([130, 200, 50]);
    const ring = new Ring<DashboardSample>(300);
    for (const each of all) {
      ring.push(each);
      blocks.prepare(ring);
    }
    expect([...blocks.changes(ring.toArray())].map(({ samples }) => samples.facts.length)).toStrictEqual([50, 200, 50]);
  });
});

describe('RowBlocks', () => {
  const grown = (rows: number): Series => {
    const series = new Series();
    for (let index = 0; index < rows; index++) series.append({ index, values: { loss: index / 2 } });
    return series;
  };
  const rowsIn = (blocks: RowBlocks): number[] => {
    const copy = new Series();
    for (const { index, columns, size } of blocks.changes()) {
      copy.appendAll(unpackColumn(index, size), { loss: unpackColumn(columns['loss']!, size) });
    }
    return [...copy.column('loss')!];
  };

  it('makes a full block once, and anew when something in it changes', () => {
    const series = grown(4500);
    const blocks = new RowBlocks('run', series);
    const [first, second, third] = [...blocks.changes()];
    series.append({ index: 4500, values: { loss: 1 } });
    const again = [...blocks.changes()];
    expect(again[0]).toBe(first);
    expect(again[1]).toBe(second);
    expect(again[2]).not.toBe(third);
    series.set(2005, { loss: 99 });
    expect([...blocks.changes()][0]).toBe(first);
    expect([...blocks.changes()][1]).not.toBe(second);
    expect(rowsIn(blocks)[2005]).toBe(99);
    series.append({ index: 3000, values: { loss: 7 } });
    expect(rowsIn(blocks)).toHaveLength(3001);
  });

  it('can make what is full before it is asked for', () => {
    const series = grown(3999);
    const blocks = new RowBlocks('run', series);
    blocks.prepare();
    const [first, second] = [...blocks.changes()];
    series.append({ index: 3999, values: { loss: 1 } });
    series.set(3000, { loss: 5 });
    blocks.prepare();
    expect([...blocks.changes()][0]).toBe(first);
    expect([...blocks.changes()][1]).not.toBe(second);
    expect([rowsIn(blocks)[3000], rowsIn(blocks)[3999]]).toStrictEqual([5, 1]);
  });

  it('gives the rows of the moment it was asked at, whatever happens while they are packed', () => {
    const series = grown(5000);
    const blocks = new RowBlocks('run', series);
    const sizes: number[] = [];
    for (const { size } of blocks.changes()) {
      sizes.push(size);
      series.append({ index: 100, values: { loss: -1 } });
    }
    expect(sizes).toStrictEqual([2000, 2000, 1000]);
    // And nothing of what was packed then is taken for what is there now.
    expect(rowsIn(blocks)).toHaveLength(101);
    expect(rowsIn(blocks)[100]).toBe(-1);
  });
});
