import { describe, expect, it } from 'vitest';
import { TensorData, combineOutputs, type ForwardBackwardOutput } from 'tinker-rx';

const output = (datums: number, metrics: Record<string, number>, type = 'TensorLogprobs'): ForwardBackwardOutput => ({
  lossFnOutputType: type,
  lossFnOutputs: Array.from({ length: datums }, (_, index) => ({
    logprobs: TensorData.from([datums + index], 'float32'),
  })),
  metrics,
});
const reduced = (name: string, ...values: readonly [datums: number, value: number][]) =>
  combineOutputs(values.map(([datums, value]) => output(datums, { [name]: value }))).metrics;

describe('combineOutputs', () => {
  it.each<[string, number, readonly [number, number][]]>([
    [
      'loss:sum',
      6,
      [
        [1, 1],
        [1, 2],
        [5, 3],
      ],
    ],
    [
      'loss:min',
      -1,
      [
        [1, 4],
        [1, -1],
      ],
    ],
    [
      'loss:max',
      4,
      [
        [1, 4],
        [1, -1],
      ],
    ],
    [
      'loss:mean',
      2.5,
      [
        [3, 2],
        [1, 4],
      ],
    ],
    [
      'time:slack',
      1.5,
      [
        [3, 2],
        [1, 4],
      ],
    ],
    [
      'rows:hash2',
      12,
      [
        [1, 5],
        [1, 7],
      ],
    ],
    [
      'a:b:sum',
      3,
      [
        [1, 1],
        [1, 2],
      ],
    ],
  ])('reduces %s to %d', (name, expected, values) => {
    expect(reduced(name, ...values)).toEqual({ [name]: expected });
  });

  it('adds hashes as unsigned 64-bit integers, with wrap-around', () => {
    expect(reduced('h:hash2', [1, 2 ** 63], [1, 2 ** 63])).toEqual({ 'h:hash2': 0 });
    expect(reduced('h:hash2', [1, -1], [1, 3])).toEqual({ 'h:hash2': 2 });
  });

  it('keeps every unique value, the later ones under numbered keys', () => {
    expect(reduced('clock_cycle:unique', [1, 7], [1, 8], [1, 7])).toEqual({
      'clock_cycle:unique': 7,
      'clock_cycle:unique_1': 8,
      'clock_cycle:unique_2': 7,
    });
  });

  it('drops what it cannot reduce: no number is better than a wrong one', () => {
    expect(reduced('p50:median', [1, 1], [1, 2])).toEqual({});
    expect(reduced('plain', [1, 1], [1, 2])).toEqual({});
    expect(combineOutputs([output(1, { 'a:sum': 1 }), output(1, {})]).metrics).toEqual({});
    expect(combineOutputs([output(1, {}), output(1, { 'a:sum': 1 })]).metrics).toEqual({});
    expect(reduced('h:hash2', [1, NaN], [1, 1])).toEqual({});
  });

  it('joins outputs in order and keeps the type', () => {
    const joined = combineOutputs([output(2, {}), output(1, {})]);
    expect(joined.lossFnOutputs.map(({ logprobs }) => logprobs!.data[0])).toEqual([2, 3, 1]);
    expect(joined.lossFnOutputType).toBe('TensorLogprobs');
  });

  it('leaves a single output as it is, unknown reductions and all', () => {
    const single = output(1, { 'p50:median': 3 });
    expect(combineOutputs([single])).toBe(single);
    expect(combineOutputs([])).toEqual({ lossFnOutputType: '', lossFnOutputs: [], metrics: {} });
  });
});
