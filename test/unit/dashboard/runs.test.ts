import { describe, expect, it } from 'vitest';
import { RunState } from 'tinker-rx/dashboard';
import { runColour } from '../../../src/dashboard/page/format.js';
import { differences } from '../../../src/dashboard/page/options.js';

/** OKLCH to linear sRGB, cut off at its ends as a screen does. */
function linear(colour: string): number[] {
  const [l, c, h] = colour.match(/[\d.]+/g)!.map(Number) as [number, number, number];
  const [a, b] = [c * Math.cos((h * Math.PI) / 180), c * Math.sin((h * Math.PI) / 180)];
  const [x, y, z] = [
    (l + 0.3963377774 * a + 0.2158037573 * b) ** 3,
    (l - 0.1055613458 * a - 0.0638541728 * b) ** 3,
    (l - 0.0894841775 * a - 1.291485548 * b) ** 3,
  ];
  return [
    4.0767416621 * x - 3.3077115913 * y + 0.2309699292 * z,
    -1.2684380046 * x + 2.6097574011 * y - 0.3413193965 * z,
    -0.0041960863 * x - 0.7034186147 * y + 1.707614701 * z,
  ].map((part) => Math.min(1, Math.max(0, part)));
}
const luminance = ([r, g, b]: number[]): number => 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
const contrast = (a: number, b: number): number => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
const WHITE = 1;
/** The dark theme's `--card`, #1b1f27. */
const DARK = luminance([0x1b, 0x1f, 0x27].map((part) => ((part / 255 + 0.055) / 1.055) ** 2.4));

describe('the colours of runs', () => {
  it('never repeat, and stand out on light and on dark', () => {
    const colours = Array.from({ length: 500 }, (_, place) => runColour(place));
    expect(new Set(colours).size).toBe(500);
    for (const colour of colours) {
      expect(contrast(luminance(linear(colour)), WHITE)).toBeGreaterThan(3);
      expect(contrast(luminance(linear(colour)), DARK)).toBeGreaterThan(3);
    }
  });

  it('of a dozen runs are far apart', () => {
    const shown = Array.from({ length: 12 }, (_, place) => linear(runColour(place)).map((part) => part ** (1 / 2.2)));
    for (const [place, one] of shown.entries()) {
      for (const other of shown.slice(place + 1)) {
        expect(Math.hypot(...one.map((part, at) => part - other[at]!))).toBeGreaterThan(0.12);
      }
    }
  });
});

describe('the options of runs', () => {
  it('are told where they differ, by their path; runs whose options are unknown do not count', () => {
    const first = { rank: 32, adam: { learningRate: 1e-4, beta2: 0.95 }, tags: ['a'], seed: 0 };
    const second = { ...first, adam: { ...first.adam, learningRate: 2e-4 }, tags: ['a', 'b'], note: 'longer' };
    expect(differences([first, undefined, second])).toStrictEqual([
      { name: 'adam.learningRate', values: ['0.0001', undefined, '0.0002'] },
      { name: 'tags', values: ['["a"]', undefined, '["a","b"]'] },
      { name: 'note', values: [undefined, undefined, 'longer'] },
    ]);
    expect(differences([first, undefined, first])).toStrictEqual([]);
    expect(differences([first, 7, 'text', null])).toStrictEqual([]);
  });
});

describe('a run', () => {
  const logged = (durationMs: number): RunState => {
    const run = new RunState('first');
    run.status = 'logged';
    run.series.append({ index: 0, values: { atMs: 1_000_000, durationMs } });
    return run;
  };

  it('has ended when it finished or failed', () => {
    const run = new RunState('first');
    expect(run.hasEnded(0)).toBe(false);
    run.status = 'failed';
    expect(run.hasEnded(0)).toBe(true);
  });

  it('that is read from its log has ended when no step came for a minute and for ten times as long as a step takes', () => {
    expect(logged(100).hasEnded(1_060_000)).toBe(false);
    expect(logged(100).hasEnded(1_060_001)).toBe(true);
    expect(logged(60_000).hasEnded(1_600_000)).toBe(false);
    expect(logged(60_000).hasEnded(1_600_001)).toBe(true);
  });
});
