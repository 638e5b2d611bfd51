import { from, lastValueFrom, toArray } from 'rxjs';
import { beforeAll, describe, expect, it } from 'vitest';
import { answers, compareEvals, type EvalRecord, evaluate, exact, summaryOf } from '../../../src/evals/index.js';
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

describe('comparing evaluations', () => {
  let runs: EvalRecord[][];
  beforeAll(async () => {
    runs = [];
    for (let seed = 0; seed <= 20; seed++) runs.push(await run(seed));
  });

  it('does not cry wolf: of two runs of one checkpoint none is called worse, with each of twenty seeds', () => {
    const verdicts = runs.slice(1).map((after, place) => compareEvals(runs[place]!, after).verdict);
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
      const found = compareEvals(runs[seed - 100]!, after);
      expect(found.verdict).toBe('worse');
      // The interval holds what was planted.
      expect(found.difference.low).toBeLessThan(-0.05);
      expect(found.difference.high).toBeGreaterThan(-0.05);
      expect(found.regressions[0]!.difference).toBeLessThanOrEqual(found.regressions.at(-1)!.difference);
      expect(compareEvals(after, runs[seed - 100]!).verdict).toBe('better');
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
      ...{ examples: 0, errored: 1, onlyBefore: 1, onlyAfter: 1, verdict: 'same', pValue: 1 },
    });
  });

  it('does not claim a difference from a few examples that all went one way', () => {
    const scored = (score: number): EvalRecord => ({
      ...runs[0]![0]!,
      samples: [{ ...runs[0]![0]!.samples[0]!, score }],
    });
    const all = (score: number) => Array.from({ length: 4 }, (_, index) => ({ ...scored(score), id: String(index) }));
    expect(compareEvals(all(1), all(0))).toMatchObject({
      regressed: 4,
      verdict: 'same',
      pValue: expect.closeTo(0.125, 12) as number,
    });
  });
});
