/** `tinker-rx eval` and `eval compare`, on the embedded service. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { LocalTinker } from '../../src/local/index.js';
import { run } from '../unit/cli/terminal.js';

let local: LocalTinker;
let folder: string;
beforeAll(async () => {
  local = await LocalTinker.start();
});
afterAll(() => local.close());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-eval-'));
  vi.stubEnv('NO_COLOR', '1');
  vi.stubEnv('TINKER_BASE_URL', local.url);
  vi.stubEnv('TINKER_API_KEY', local.apiKey);
  const tasks = Array.from({ length: 12 }, (_, index) =>
    JSON.stringify({ id: `t${index}`, question: `Say something, number ${index}.`, answer: 'e' }),
  );
  write('tasks.jsonl', tasks.join('\n'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const path = (name: string): string => join(folder, name);
const write = (name: string, text: string): void => writeFileSync(path(name), `${text}\n`);
const lines = (name: string): Record<string, unknown>[] =>
  readFileSync(path(name), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const evaluate = (...more: string[]) =>
  run(['eval', path('tasks.jsonl'), '-m', 'tinker-rx/tiny', '--max-tokens', '8', ...more]);

describe('eval', () => {
  it('asks every task, keeps the results, and tells scores with intervals and pass@k', async () => {
    const { code, stdout, stderr } = await evaluate('--scorer', 'contains', '-n', '4', '--out', path('a.jsonl'));
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/12 tasks/);
    expect(stdout).toMatch(/contains\s+\d\.\d{3} \(\d\.\d{3} to \d\.\d{3}\), 95 %/);
    expect(stdout).toMatch(/pass@1[\s\S]*pass@2[\s\S]*pass@4/);
    const [protocol, ...examples] = lines('a.jsonl');
    expect(protocol).toMatchObject({
      ...{ type: 'protocol', tasks: 'tasks.jsonl', model: 'tinker-rx/tiny', renderer: 'tinker_rx_bytes', samples: 4 },
      ...{ samplingParams: { maxTokens: 8, temperature: 1, topP: 1, topK: -1 }, seed: 0, scorers: ['contains'] },
    });
    expect(new Set(examples.map(({ id }) => id)).size).toBe(12);
    const again = await evaluate('--scorer', 'contains', '-n', '4', '--out', path('a.jsonl'));
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('--resume') as string]);
    const resumed = await evaluate('--scorer', 'contains', '-n', '4', '--out', path('a.jsonl'), '--resume');
    expect(resumed.code, resumed.stderr).toBe(0);
    // Nothing was left to ask, so nothing was spent.
    expect(resumed.stdout).toBe(stdout.replace(/^Cost .*\n/m, ''));
    expect(lines('a.jsonl').filter(({ type }) => type === 'example')).toHaveLength(12);
    const other = await evaluate('--scorer', 'exact', '-n', '4', '--out', path('a.jsonl'), '--resume');
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('its scorers was ["contains"]') as string]);
  });

  it('measures the likelihood of conversations', async () => {
    const rows = ['Paris', 'Rome'].map((answer) =>
      JSON.stringify({
        messages: [
          { role: 'user', content: 'A capital?' },
          { role: 'assistant', content: answer },
        ],
      }),
    );
    write('tasks.jsonl', rows.join('\n'));
    const { code, stdout, stderr } = await evaluate('--likelihood', '--out', path('nll.jsonl'), '--format', 'json');
    expect(code, stderr).toBe(0);
    const { corpus, scores } = JSON.parse(stdout) as {
      corpus: Record<string, number>;
      scores: Record<string, { mean: number }>;
    };
    // Five and four letters, and an end mark each, which has no text and so no part in bits per byte.
    expect(corpus).toMatchObject({ tokens: 11, bytes: 9 });
    const examples = lines('nll.jsonl').filter(({ type }) => type === 'example');
    const textNll = examples.map(
      ({ samples }) => (samples as { metrics: Record<string, number> }[])[0]!.metrics['textNll']!,
    );
    expect(textNll).toHaveLength(2);
    expect(corpus['bitsPerByte']).toBeCloseTo((textNll[0]! + textNll[1]!) / Math.LN2 / 9, 9);
    expect(textNll[0]! + textNll[1]!).toBeLessThan(corpus['nll']! * 11);
    expect(corpus['perplexity']).toBeCloseTo(Math.exp(corpus['nll']!), 9);
    expect(corpus['accuracy']).toBe(Math.round(corpus['accuracy']! * 11) / 11);
    expect(scores['logprob']!.mean).toBeLessThan(0);
  });

  it('takes scorers of one’s own, a schema, a judge, and a rollout', async () => {
    write('short.mjs', 'export default ({ output }) => ({ name: "Short", score: output.length < 4 ? 1 : 0 });');
    write('schema.json', '{"type": "object"}');
    write(
      'agent.mjs',
      `export const agent = (renderer) => (task, policy) => {
         const prompt = renderer.buildGenerationPrompt([{ role: 'user', content: task.question }]);
         return policy.turn(prompt).then((turn) => ({ turns: [turn], reward: 0.25, logs: { text: 'said' } }));
       };`,
    );
    const two = ['--scorer', path('short.mjs'), '--scorer', `json-schema=${path('schema.json')}`];
    const { code, stdout, stderr } = await evaluate(
      ...two,
      '--out',
      path('two.jsonl'),
      '--limit',
      '3',
      '--format',
      'json',
    );
    expect(code, stderr).toBe(0);
    const { scores, examples } = JSON.parse(stdout) as { scores: Record<string, { mean: number }>; examples: number };
    expect([Object.keys(scores), scores['json_schema']!.mean, examples]).toEqual([['short', 'json_schema'], 0, 3]);
    const judge = ['--judge', 'tinker-rx/tiny', '--criteria', 'Polite.', '--limit', '2', '--out', path('judge.jsonl')];
    // The embedded model is no judge: that is told as a failure, not as a score of 0.
    const judged = await evaluate(...judge);
    expect([judged.code, judged.stdout]).toEqual([1, expect.stringMatching(/0 answers, 2 scores/) as string]);
    const own = await evaluate('--rollout', path('agent.mjs'), '--limit', '2', '--out', path('own.jsonl'));
    expect(own.code, own.stderr).toBe(0);
    expect(own.stdout).toMatch(/reward\s+0\.250/);
    expect(lines('own.jsonl')[1]).toMatchObject({
      samples: [{ output: 'said', score: 0.25, sampledTokens: expect.any(Number) as number }],
    });
  });

  it('says what is missing', async () => {
    expect((await evaluate()).stderr).toMatch(/No scorer/);
    expect((await run(['eval'])).stderr).toMatch(/No tasks/);
    expect((await evaluate('--scorer', 'exakt', '--out', path('x.jsonl'))).stderr).toMatch(
      /No scorer exakt\nThere are exact/,
    );
    write('none.mjs', 'export const scorer = 1;');
    expect((await evaluate('--scorer', path('none.mjs'), '--out', path('x.jsonl'))).stderr).toMatch(
      /exports no scorer/,
    );
  });
});

describe('eval compare', () => {
  /** Results of one sample each: what was said, and its score. */
  const results = (name: string, said: readonly (readonly [output: string, score: number] | undefined)[]) => {
    const protocol = {
      ...{ type: 'protocol', version: 1, model: name, samples: 1, samplingParams: {}, seed: 0, scorers: ['exact'] },
      ...{ passAt: 0.5, versions: {} },
    };
    const sample = (output: string, score: number) => ({
      ...{ index: 0, seed: 1, output, score, scores: { exact: score }, promptTokens: 1, sampledTokens: 1 },
      ...{ stopReason: 'stop', durationMs: 1 },
    });
    const failure = { index: 0, stage: 'rollout', name: 'Error', message: 'down' };
    const examples = said.map((each, index) => ({
      ...{ type: 'example', id: `e${index}`, input: `question ${index}`, expected: 'yes', durationMs: 1 },
      ...(each === undefined ? { samples: [], failures: [failure] } : { samples: [sample(...each)], failures: [] }),
    }));
    write(name, [protocol, ...examples].map((line) => JSON.stringify(line)).join('\n'));
    return path(name);
  };
  const right = ['yes', 1] as const;
  const wrong = ['no, and a long explanation that goes on', 0] as const;

  it('shows the worst regressions side by side, and fails where it is asked to', async () => {
    const before = results('before.jsonl', [...Array.from({ length: 40 }, () => right), undefined]);
    const after = results('after.jsonl', [
      ...Array.from({ length: 40 }, (_, index) => (index < 14 ? wrong : right)),
      right,
    ]);
    const strict = ['--confidence', '0.999'];
    const { code, stdout } = await run([
      ...['eval', 'compare', before, after, '--fail-if-worse', '--worst', '1', ...strict],
    ]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/40 compared: 0 improved, 14 regressed, 26 the same/);
    expect(stdout).toMatch(/Errored\s+1 without a score/);
    expect(stdout).toMatch(/Difference\s+−0\.350 \(−0\.6\d\d to −0\.0\d\d\), 99\.9 % confidence/);
    expect(stdout).toMatch(/McNemar's exact test, p = 0\.000122/);
    expect(stdout).toMatch(/Verdict\s+worse/);
    expect(stdout).toMatch(/── e0\nquestion 0\nexpected: yes\nbefore: 1\.00\s+│ after: 0\.00\nyes\s+│ no, and a long/);
    expect(stdout).not.toMatch(/── e1/);
    expect((await run(['eval', 'compare', before, after])).code).toBe(0);
    const reversed = await run(['eval', 'compare', after, before, '--fail-if-worse', '--format', 'json']);
    expect([reversed.code, JSON.parse(reversed.stdout)]).toEqual([
      0,
      expect.objectContaining({ verdict: 'better', improved: 14, regressed: 0 }) as unknown,
    ]);
  });

  it.each([5, 10, 11, 50])('with %i examples that all regressed, fails where it is asked to', async (count) => {
    const before = results(
      'before.jsonl',
      Array.from({ length: count }, () => right),
    );
    const after = results(
      'after.jsonl',
      Array.from({ length: count }, () => wrong),
    );
    const { code, stdout, stderr } = await run(['eval', 'compare', before, after, '--fail-if-worse']);
    expect(code).toBe(1);
    if (count < 6) {
      expect(stdout).toMatch(/Difference\s+−1\.000, 95 % confidence/);
      expect(stdout).toMatch(/Verdict\s+too few examples: at least 6 for 95 %/);
      expect(stderr).toMatch(/--fail-if-worse: the score fell, and there are too few examples: at least 6 for 95 %/);
    } else {
      expect(stdout).toMatch(/Difference\s+−1\.000 \(−1\.000 to −0\.[1-9]\d\d\), 95 % confidence/);
      expect(stdout).toMatch(/Verdict\s+worse/);
    }
    expect((await run(['eval', 'compare', before, before, '--fail-if-worse'])).code).toBe(0);
    const strict = await run(['eval', 'compare', after, before, '--confidence', '0.999', '--fail-if-worse']);
    expect([strict.code, /at least 11 for 99\.9 %/.test(strict.stdout)]).toEqual([0, count < 11]);
  });

  it('fails where most examples failed in the second file', async () => {
    const before = results(
      'before.jsonl',
      Array.from({ length: 100 }, () => right),
    );
    const after = results(
      'after.jsonl',
      Array.from({ length: 100 }, (_, index) => (index < 20 ? right : undefined)),
    );
    const { code, stdout, stderr } = await run(['eval', 'compare', before, after, '--fail-if-worse']);
    expect(code).toBe(1);
    expect(stdout).toMatch(/Errored\s+80 without a score in one of the two, 80 of them only in the second/);
    expect(stdout).toMatch(/Verdict\s+no difference found/);
    expect(stderr).toMatch(/80 examples have a score in the first file only; with the lowest score for each/);
  });

  it('refuses what cannot be compared', async () => {
    const before = results('before.jsonl', [right]);
    write('other.jsonl', '{"messages": []}');
    expect((await run(['eval', 'compare', before, path('other.jsonl')])).stderr).toMatch(/is not a results file/);
    expect((await run(['eval', 'compare', before, path('none.jsonl')])).stderr).toMatch(/no such file/);
    const failed = results('failed.jsonl', [undefined]);
    expect((await run(['eval', 'compare', before, failed])).stderr).toMatch(/no example in common/);
  });
});
