import { from, lastValueFrom, toArray } from 'rxjs';
import { beforeAll, describe, expect, it } from 'vitest';
import { answers, compareEvals, type EvalRecord, evaluate, exact, summaryOf } from '../../../src/evals/index.js';
import { mcnemar } from '../../../src/evals/statistics/internal/pairedTests.js';
import { seedFrom } from '../../../src/support/random.js';
import { renderer, type ScriptedSampler, scriptedSampler } from './scriptedSampler.js';

const TASKS = Array.from({ length: 200 }, (_, index) => ({ id: `e${index}`, question: `<${index}>`, answer: 'yes' }));
const agent = answers<(typeof TASKS)[number], ScriptedSampler>({ renderer });
const chance = (...parts: number[]): number => seedFrom(...parts) / 2 ** 31;

/**
 * A checkpoint that is as sure of each example as it happens: of a third never right, of a third always, of the others now and then.
 * `lost` is the share of its right answers on every example that it has unlearned.
 */
const checkpoint = (lost: number): ScriptedSampler =>
  scriptedSampler(({ text, seed, place }) => {
    const example = Number(/<(\d+)>/.exec(text)![1]);
    const sure = Math.min(1, Math.max(0, 3 * chance(example) - 1)) * (1 - lost);
    return chance(seed, place) < sure ? 'yes' : 'no';
  });
const run = (seed: number, lost = 0): Promise<EvalRecord[]> =>
  lastValueFrom(
    from(TASKS).pipe(evaluate(agent, { sampler: checkpoint(lost), scorers: [exact()], samples: 8, seed }), toArray()),
  );

/** As strict as a gate for many changes should be. */
const GATE = { confidence: 0.999 };

describe('comparing evaluations', () => {
  let runs: EvalRecord[][];
  beforeAll(async () => {
    runs = [];
    for (let seed = 0; seed <= 20; seed++) runs.push(await run(seed));
  });

  it('does not cry wolf: of two runs of one checkpoint none is called worse, with each of twenty seeds', () => {
    const verdicts = runs.slice(1).map((after, place) => compareEvals(runs[place]!, after, GATE).verdict);
    expect(verdicts).toHaveLength(20);
    expect(verdicts).not.toContain('worse');
    // Better is the same mistake; among twenty pairs it may happen once.
    expect(verdicts.filter((verdict) => verdict === 'better').length).toBeLessThanOrEqual(1);
    // They do differ: it is not that nothing was random.
    for (let place = 0; place < 20; place++)
      expect(compareEvals(runs[place]!, runs[place + 1]!).regressed).toBeGreaterThan(10);
  });

  it('finds a planted regression of 5 points', async () => {
    const before = summaryOf(runs[0]!).score.mean;
    for (const seed of [100, 101, 102]) {
      const after = await run(seed, 0.05 / before);
      const found = compareEvals(runs[seed - 100]!, after, GATE);
      expect(found.verdict).toBe('worse');
      // The interval holds what was planted.
      expect(found.difference.low).toBeLessThan(-0.05);
      expect(found.difference.high).toBeGreaterThan(-0.05);
      expect(found.regressions[0]!.difference).toBeLessThanOrEqual(found.regressions.at(-1)!.difference);
      expect(compareEvals(after, runs[seed - 100]!, GATE).verdict).toBe('better');
    }
  });

  it('is wrong as often as it says: at 99 %, of 1,500 pairs of equal models about one in 200 is called worse', () => {
    let worse = 0;
    for (let pair = 0; pair < 1500; pair++) {
      const [before, after] = [0, 1].map((side) =>
        Array.from({ length: 40 }, (_, example): EvalRecord => {
          const score = chance(pair, side, example, 3);
          const sample = { index: 0, seed: 0, output: '', score, scores: {}, promptTokens: 0, sampledTokens: 0 };
          return {
            ...{ id: String(example), input: '', failures: [], durationMs: 0 },
            samples: [{ ...sample, stopReason: 'stop', durationMs: 0 }],
          };
        }),
      );
      if (compareEvals(before!, after!, { confidence: 0.99 }).verdict === 'worse') worse++;
    }
    // 7 or 8 are expected; 0, or more than 18, would be a matter of less than one in a thousand.
    expect(worse).toBeGreaterThan(0);
    expect(worse).toBeLessThan(19);
  });

  it('counts examples that errored, or that only one has, apart', () => {
    const [first, second, third] = runs[0]!;
    const failed = {
      ...first!,
      samples: [],
      failures: [{ index: 0, stage: 'rollout' as const, name: 'E', message: '' }],
    };
    expect(compareEvals([first!, second!], [failed, third!])).toMatchObject({
      ...{ examples: 0, errored: 1, lost: 1, onlyBefore: 1, onlyAfter: 1, verdict: 'too-few', pValue: 1 },
    });
  });

  const recordsOf = (scores: readonly (number | undefined)[]): EvalRecord[] =>
    scores.map((score, index) => ({
      ...{ id: String(index), input: '', failures: [], durationMs: 0 },
      samples:
        score === undefined
          ? []
          : [
              {
                ...{ index: 0, seed: 0, output: '', score, scores: {}, promptTokens: 0, sampledTokens: 0 },
                ...{ stopReason: 'stop', durationMs: 0 },
              },
            ],
    }));
  const repeat = (count: number, score: (index: number) => number) =>
    recordsOf(Array.from({ length: count }, (_, i) => score(i)));

  describe.each([
    ['right or wrong', 1],
    ['scores between', 0.5],
  ])('%s', (_, unit) => {
    it.each([
      [5, 'too-few', 'too-few', 'too-few'],
      [11, 'same', 'better', 'worse'],
      [50, 'same', 'better', 'worse'],
      [2000, 'same', 'better', 'worse'],
    ])('%i examples: equal ones are %s, others %s and %s', (count, equal, up, down) => {
      const mixed = repeat(count, (index) => (index % 2) * unit);
      const [none, all] = [repeat(count, () => 0), repeat(count, () => unit)];
      for (const confidence of [0.95, 0.999]) {
        expect(compareEvals(mixed, mixed, { confidence }).verdict).toBe(equal);
        expect(compareEvals(none, all, { confidence }).verdict).toBe(up);
        expect(compareEvals(all, none, { confidence }).verdict).toBe(down);
      }
    });

    it('10 examples are too few for 99.9 %, and enough for 95 %', () => {
      const [none, all] = [repeat(10, () => 0), repeat(10, () => unit)];
      expect(compareEvals(none, all, GATE)).toMatchObject({ verdict: 'too-few', needed: 11, improved: 10 });
      expect(compareEvals(none, all)).toMatchObject({ verdict: 'better', needed: 6 });
      expect(compareEvals(all, none)).toMatchObject({ verdict: 'worse' });
    });

    it('is never certain: the interval has a width where nothing varies', () => {
      for (const count of [11, 50, 2000]) {
        const [none, all] = [repeat(count, () => 0), repeat(count, () => unit)];
        const up = compareEvals(none, all);
        expect(up.difference.low).toBeLessThan(up.difference.mean);
        expect(up.after.low).toBeLessThan(up.after.high);
        const still = compareEvals(all, all).difference;
        expect([still.low < 0, still.high > 0]).toStrictEqual([true, true]);
      }
      expect(
        compareEvals(
          repeat(11, () => 0),
          repeat(11, () => unit),
        ).pValue,
      ).toBeGreaterThan(0);
    });

    it('gives a verdict exactly where the interval leaves 0 out and p is small', () => {
      for (let pair = 0; pair < 300; pair++) {
        const count = 6 + (pair % 40);
        const [before, after] = [0, 1].map((side) =>
          repeat(count, (index) => {
            const drawn = chance(pair, side, index, 11) + side * (pair % 3) * 0.15;
            return unit === 1 ? Number(drawn > 0.5) : drawn;
          }),
        );
        const { difference, pValue, verdict } = compareEvals(before!, after!);
        const leavesOut = difference.low > 0 || difference.high < 0;
        expect([verdict !== 'same', pValue < 0.05]).toStrictEqual([leavesOut, leavesOut]);
      }
    });
  });

  it('are summed up and compared by the hundred thousand', () => {
    const many = repeat(200_000, (index) => index % 2);
    expect(summaryOf(many)).toMatchObject({ examples: 200_000, score: { mean: 0.5 }, passAtK: { 1: { mean: 0.5 } } });
    expect(compareEvals(many, many).verdict).toBe('same');
  });

  it.each([
    [20, 0.3, 0.1],
    [50, 0.05, 0.05],
    [200, 0.1, 0.05],
  ])('of %i examples, the interval holds the true difference at least as often as it says', (count, up, down) => {
    let held = 0;
    for (let trial = 0; trial < 400; trial++) {
      const drawn = Array.from({ length: count }, (_, index) => chance(trial, index, 17));
      const { difference } = mcnemar(
        drawn.filter((value) => value < up).length,
        drawn.filter((value) => value >= up && value < up + down).length,
        ...([count, 0.95] as const),
      );
      if (difference.low <= up - down && difference.high >= up - down) held++;
    }
    // 380 are promised; fewer than 365 would be a matter of less than one in three hundred.
    expect(held).toBeGreaterThanOrEqual(365);
  });

  it('two equal differences are no certainty', () => {
    const found = compareEvals(recordsOf([0, 0]), recordsOf([0.5, 0.5]));
    expect(found).toMatchObject({ verdict: 'too-few', difference: { low: -Infinity, high: Infinity } });
    expect(found.pValue).toBeGreaterThan(0.3);
  });

  it('finds 60 % against 50 % of 2,000, and not of 50', () => {
    const of = (count: number, share: number) => repeat(count, (index) => Number(chance(index, 5) < share));
    expect(compareEvals(of(2000, 0.5), of(2000, 0.6)).verdict).toBe('better');
    expect(compareEvals(of(50, 0.5), of(50, 0.52)).verdict).toBe('same');
  });

  it('tells what lost examples would change', () => {
    const before = repeat(100, () => 1);
    const after = recordsOf(Array.from({ length: 100 }, (_, index) => (index < 5 ? 1 : undefined)));
    expect(compareEvals(before, after)).toMatchObject({
      ...{ examples: 5, errored: 95, lost: 95, verdict: 'too-few', verdictWithLost: 'worse' },
    });
    const few = recordsOf(Array.from({ length: 100 }, (_, index) => (index < 98 ? 1 : undefined)));
    expect(compareEvals(before, few)).toMatchObject({ lost: 2, verdict: 'same', verdictWithLost: 'same' });
    expect(compareEvals(after, before)).toMatchObject({ lost: 0, verdictWithLost: 'too-few' });
  });

  it('refuses a confidence that cannot be', () => {
    for (const confidence of [0, 1, NaN, 95])
      expect(() => compareEvals([], [], { confidence })).toThrow('confidence must be between 0 and 1');
  });
});
