import { mkdtempSync, readFileSync, rmSync, writeFileSync, appendFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { from, lastValueFrom, NEVER, type Observable, of, throwError, toArray } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  answers,
  contains,
  type EvalRecord,
  evaluate,
  evaluateInto,
  evaluation,
  exact,
  fromEval,
  jsonSchema,
  judged,
  numeric,
  readProtocol,
  type ScoreArgs,
  type Scorer,
  summaryOf,
} from '../../../src/evals/index.js';
import { singleTurn } from '../../../src/rl/index.js';
import { renderer, type ScriptedSampler, scriptedSampler } from './scriptedSampler.js';

interface Sum {
  readonly id?: string;
  readonly question: string;
  readonly answer: string;
}
const SUMS: readonly Sum[] = [
  { question: '1+1', answer: '2' },
  { question: '1+2', answer: '3' },
  { question: '2+2', answer: '4' },
];
/** Right but for 2+2. */
const pupil = () => scriptedSampler(({ text }) => (text.includes('2+2') ? '5' : text.includes('1+2') ? '3' : '2'));
const agent = answers<Sum, ScriptedSampler>({ renderer });
const collect = <T>(values: Observable<T>) => lastValueFrom(values.pipe(toArray()), { defaultValue: [] });

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'evals-'))));
afterEach(() => rmSync(folder, { recursive: true }));

describe('evaluate', () => {
  it('asks every example and scores what is said', async () => {
    const sampler = pupil();
    const records = await collect(
      from(SUMS).pipe(evaluate(agent, { sampler, scorers: [exact(), contains()], samples: 2 })),
    );
    expect(records.map(({ input, expected, samples }) => [input, expected, samples.map(({ score }) => score)])).toEqual(
      [
        ['1+1', '2', [1, 1]],
        ['1+2', '3', [1, 1]],
        ['2+2', '4', [0, 0]],
      ],
    );
    expect(records[0]!.samples[0]).toMatchObject({
      output: '2',
      scores: { exact: 1, contains: 1 },
      stopReason: 'stop',
    });
    // Both answers of an example come in one request.
    expect(sampler.asked).toHaveLength(3);
    expect(summaryOf(records)).toMatchObject({
      examples: 3,
      samples: 6,
      unscored: 0,
      score: { mean: 2 / 3, count: 3 },
    });
  });

  it('takes the reward of a rollout where there are no scorers', async () => {
    const graded = singleTurn<Sum, ScriptedSampler>({
      renderer,
      prompt: ({ question }) => question,
      reward: ({ text }, { answer }) => (text === answer ? 0.75 : 0.25),
    });
    const records = await collect(from(SUMS).pipe(evaluate(graded, { sampler: pupil() })));
    expect(records.map(({ samples }) => samples[0]!.scores)).toEqual([
      { reward: 0.75 },
      { reward: 0.75 },
      { reward: 0.25 },
    ]);
  });

  it('gives an example the same id and the same seeds in any order and beside any others', async () => {
    const one = pupil();
    const other = pupil();
    const first = await collect(from(SUMS).pipe(evaluate(agent, { sampler: one, scorers: [exact()] })));
    const last = await collect(
      of({ answer: '4', question: '2+2' }, SUMS[0]!).pipe(evaluate(agent, { sampler: other, scorers: [exact()] })),
    );
    const facts = ({ id, samples }: EvalRecord) => [id, samples[0]!.seed];
    expect(last.map(facts)).toEqual([facts(first[2]!), facts(first[0]!)]);
  });

  it('keeps the id a task has, and tells tasks of the same id apart', async () => {
    const tasks = [
      { id: 'a', question: '1+1', answer: '2' },
      SUMS[0]!,
      SUMS[0]!,
      { id: 'a', question: '1+2', answer: '3' },
    ];
    const ids = (await collect(from(tasks).pipe(evaluate(agent, { sampler: pupil(), scorers: [exact()] })))).map(
      ({ id }) => id,
    );
    expect(ids).toEqual(['a', expect.stringMatching(/^[0-9a-f]{16}$/), `${ids[1]}~2`, 'a~2']);
  });

  it('tells failed answers and failed scorers apart from wrong answers', async () => {
    const failing: ScriptedSampler = {
      sample: (options) =>
        renderer.tokenizer.decode(options.prompt.toInts()).includes('1+1')
          ? throwError(() => new Error('out of luck'))
          : pupil().sample(options),
    };
    const scorer: Scorer<Sum> = ({ output, expected }) => {
      if (output === '3') throw new TypeError('cannot read it');
      return output === expected ? 1 : 0;
    };
    const records = await collect(
      from(SUMS).pipe(evaluate(agent, { sampler: failing, scorers: { right: scorer }, onFailure: { retries: 1 } })),
    );
    expect(records.map(({ failures }) => failures)).toEqual([
      [{ index: 0, stage: 'rollout', name: 'Error', message: 'out of luck' }],
      [{ index: 0, stage: 'scorer', name: 'TypeError', message: 'cannot read it', output: '3' }],
      [],
    ]);
    expect(summaryOf(records)).toMatchObject({
      examples: 3,
      unscored: 2,
      failures: { rollout: 1, scorer: 1 },
      score: { mean: 0, count: 1 },
    });
  });

  it('counts a score of true as 1 and of false as 0, and says what else a scorer may return', async () => {
    const scoreOf = async (scorer: unknown, more: { timeoutMs?: number } = {}) => {
      const options = { sampler: pupil(), scorers: { mine: scorer as Scorer<Sum> }, ...more };
      const [record] = await collect(of(SUMS[0]!).pipe(evaluate(agent, options)));
      return record!.samples[0]?.score ?? record!.failures[0]!.message;
    };
    expect(await scoreOf(() => true)).toBe(1);
    expect(await scoreOf(() => Promise.resolve(false))).toBe(0);
    expect(await scoreOf(() => ({ score: true }))).toBe(1);
    const accepted = 'it must be a finite number, true or false, or { score }';
    expect(await scoreOf(() => {})).toBe(`the score of mine is undefined (is a return missing?); ${accepted}`);
    expect(await scoreOf(() => '1')).toBe(`the score of mine is the text "1"; ${accepted}`);
    expect(await scoreOf(() => ({ value: 1 }))).toBe(`the score of mine is an object with value; ${accepted}`);
    expect(await scoreOf(() => null)).toBe(`the score of mine is null; ${accepted}`);
    expect(await scoreOf(() => NaN)).toBe(`the score of mine is NaN; ${accepted}`);
    expect(await scoreOf(() => Promise.resolve(1), { timeoutMs: 2 ** 40 })).toBe(1);
    expect(await scoreOf(() => NEVER, { timeoutMs: 5 })).toBe('scoring took longer than 5 ms');
  });

  it('takes scorers in the shape of autoevals as they are', async () => {
    // Written by hand after the published types of autoevals 0.0.132: Scorer<string, {}>, with its name beside the function.
    interface AutoevalsScore {
      name: string;
      score: number | null;
      metadata?: Record<string, unknown>;
    }
    const Levenshteinish = (args: { output: string; expected?: string }): Promise<AutoevalsScore> =>
      Promise.resolve({ name: 'Levenshteinish', score: args.output === args.expected ? 1 : 0.5, metadata: {} });
    const Skipped = Object.assign((_: { output: string }): AutoevalsScore => ({ name: 'Skipped', score: null }), {
      scorerName: 'skipped_here',
    });
    const [record] = await collect(
      of(SUMS[2]!).pipe(evaluate(agent, { sampler: pupil(), scorers: [Levenshteinish, Skipped] })),
    );
    expect(record!.samples[0]!.scores).toEqual({ Levenshteinish: 0.5 });
    const [unscored] = await collect(of(SUMS[2]!).pipe(evaluate(agent, { sampler: pupil(), scorers: [Skipped] })));
    expect(unscored!.failures).toMatchObject([{ stage: 'scorer', message: 'skipped_here gave no score' }]);
  });

  it('fits evaluateEvery: metrics with the interval, by the name of the evaluation', async () => {
    const measure = evaluation(agent, { tasks: from(SUMS), scorers: [exact(), contains()], samples: 2 });
    expect(await lastValueFrom(measure(pupil()))).toEqual({
      'test/score': 2 / 3,
      'test/score_low': expect.closeTo(0.2076596) as number,
      'test/score_high': expect.closeTo(0.9385081) as number,
      'test/contains': 2 / 3,
      'test/pass@1': 2 / 3,
      'test/pass@2': 2 / 3,
      'test/failed': 0,
    });
  });

  it('refuses options that cannot be', () => {
    const sampler = pupil();
    expect(() => evaluate(agent, { sampler, samples: 0 })).toThrow(RangeError);
    expect(() => evaluate(agent, { sampler, concurrency: 0 })).toThrow('concurrency must be >= 1, got 0');
    expect(() => evaluate(agent, { sampler, onFailure: { retries: -1 } })).toThrow(RangeError);
    expect(() => evaluate(agent, { sampler, seed: 0.5 })).toThrow(RangeError);
    expect(() => evaluate(agent, { sampler, timeoutMs: 0 })).toThrow(RangeError);
  });
});

describe('scorers', () => {
  const args = (output: string, expected?: string): ScoreArgs =>
    ({
      input: '?',
      output,
      ...(expected === undefined ? {} : { expected }),
      task: {},
      trajectory: { seed: 1 },
    }) as ScoreArgs;

  it.each([
    [exact(), ' Paris \n', 'Paris', 1],
    [exact(), 'paris', 'Paris', 0],
    [exact({ caseSensitive: false }), 'paris', 'Paris', 1],
    [contains(), 'It is Paris, of course.', 'Paris', 1],
    [contains(), 'It is Rome.', 'Paris', 0],
    [numeric(), 'So 3 + 4 = 7', '7', 1],
    [numeric(), 'That makes $1,024.50', '1024.5', 1],
    [numeric(), 'It is −3.', '#### -3', 1],
    [numeric(), '0.999999', '1', 0],
    [numeric({ tolerance: 0.01 }), '0.995', '1', 1],
    [numeric(), 'no idea', '7', 0],
    [numeric(), '1e3', '1000', 1],
    [numeric(), 'It is 1,024', '1024', 1],
    [numeric(), 'It is 1,024.', '24', 0],
    [numeric(), '1024', '1,024', 1],
    [numeric(), '−12,345,678', '-12345678', 1],
    [numeric(), 'one of (1,2,3)', '3', 1],
    [numeric(), 'from 3-5', '5', 1],
    [numeric(), 'x=-5', '-5', 1],
    [numeric(), '.5', '0.5', 1],
  ])('%o of %j with %j expected is %d', (scorer, output, expected, score) => {
    expect(scorer(args(output, expected))).toBe(score);
  });

  it('need what they compare with', () => {
    expect(() => exact()(args('7'))).toThrow('exact needs an expected answer');
    expect(() => numeric()(args('7', 'seven'))).toThrow('numeric needs a number as the expected answer');
  });

  it.each([
    ['{"name": "Ada"}', 1],
    ['```json\n{"name": "Ada"}\n```', 1],
    ['{"name": 7}', 0],
    ['Ada', 0],
  ])('jsonSchema of %j is %d', async (output, score) => {
    const scorer = jsonSchema({ type: 'object', properties: { name: { type: 'string' } }, required: ['name'] });
    expect(await lastValueFrom(scorer(args(output)))).toBe(score);
  });

  it('judged asks another model, again where it cannot be read, and fails after that', async () => {
    const verdicts = ['I like it.', 'Fine.\n{"score": 0.75}'];
    const sampler = scriptedSampler(() => verdicts.shift() ?? 'Nothing to say.');
    const scorer = judged({ sampler, renderer, criteria: 'Rhymes.', retries: 1 });
    expect(await lastValueFrom(scorer(args('a bee, a sea', 'poem')))).toBe(0.75);
    const [first, second] = sampler.asked;
    expect(renderer.tokenizer.decode(first!.prompt.toInts())).toMatch(/Rhymes\.[\s\S]*poem[\s\S]*a bee, a sea/);
    expect(first!.samplingParams!.temperature).toBe(0);
    expect(second!.samplingParams!.seed).not.toBe(first!.samplingParams!.seed);
    await expect(lastValueFrom(scorer(args('x')))).rejects.toThrow('the judge gave no score');
  });
});

describe('evaluateInto', () => {
  const path = () => join(folder, 'sums.eval.jsonl');
  const options = (sampler: ScriptedSampler) => ({
    ...{ sampler, scorers: [exact()], samples: 2, renderer, samplingParams: { maxTokens: 4 }, seed: 3 },
    ...{ tasks: 'sums', model: 'pupil' },
  });

  it('pins how it is made, and writes each example once', async () => {
    await collect(from(SUMS).pipe(evaluateInto(path(), agent, options(pupil()))));
    expect(readProtocol(path())).toEqual({
      ...{ tasks: 'sums', model: 'pupil', renderer: 'tinker_rx_bytes', samples: 2, samplingParams: { maxTokens: 4 } },
      ...{ seed: 3, scorers: ['exact'], passAt: 0.5 },
      versions: { 'tinker-rx': expect.stringMatching(/^\d+\.\d+\.\d+/) as string, node: process.version },
    });
    const lines = readFileSync(path(), 'utf8').trimEnd().split('\n');
    expect(lines).toHaveLength(4);
  });

  it('asks nothing again that the file has, also where the last line is torn', async () => {
    const whole = await collect(from(SUMS).pipe(evaluateInto(path(), agent, options(pupil()))));
    const lines = readFileSync(path(), 'utf8').split('\n');
    writeFileSync(path(), `${lines.slice(0, 2).join('\n')}\n${lines[2]!.slice(0, 40)}`);
    const sampler = pupil();
    const resumed = await collect(from(SUMS).pipe(evaluateInto(path(), agent, options(sampler))));
    expect(sampler.asked).toHaveLength(2);
    const facts = ({ id, samples }: EvalRecord) => ({ id, samples: samples.map(({ durationMs: _, ...rest }) => rest) });
    expect(resumed.map(facts)).toEqual(whole.map(facts));
    expect((await collect(fromEval(path()))).map(({ id }) => id)).toEqual(whole.map(({ id }) => id));
  });

  it('asks failed examples again only where that is wanted, and keeps one line each', async () => {
    const broken: ScriptedSampler = { sample: () => throwError(() => new Error('down')) };
    await collect(of(SUMS[0]!).pipe(evaluateInto(path(), agent, { ...options(broken), onFailure: 'skip' })));
    await collect(from(SUMS).pipe(evaluateInto(path(), agent, options(pupil()))));
    expect((await collect(fromEval(path()))).map(({ failures }) => failures.length)).toEqual([2, 0, 0]);
    const records = await collect(
      from(SUMS).pipe(evaluateInto(path(), agent, { ...options(pupil()), retryFailures: true })),
    );
    expect(records.map(({ failures }) => failures.length)).toEqual([0, 0, 0]);
    expect(new Set((await collect(fromEval(path()))).map(({ id }) => id)).size).toBe(3);
    expect(readFileSync(path(), 'utf8').match(/"type":"example"/g)).toHaveLength(3);
  });

  it('refuses a file of another evaluation, naming what differs', async () => {
    await collect(from(SUMS).pipe(evaluateInto(path(), agent, options(pupil()))));
    const sampler = pupil();
    const other = from(SUMS).pipe(
      evaluateInto(path(), agent, { ...options(sampler), samplingParams: { maxTokens: 8 } }),
    );
    await expect(collect(other)).rejects.toThrow('its samplingParams was {"maxTokens":4} and now is {"maxTokens":8}');
    expect(sampler.asked).toHaveLength(0);
    appendFileSync(path(), '{"type":"example","id":1}\n');
    await expect(collect(fromEval(path()))).rejects.toThrow(/sums\.eval\.jsonl:5: not a line of evaluation results/);
    writeFileSync(path(), '{"messages":[]}\n');
    const none = from(SUMS).pipe(evaluateInto(path(), agent, options(pupil())));
    await expect(collect(none)).rejects.toThrow('is not a results file');
  });
});
