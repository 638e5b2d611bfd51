/** From a product's calls to a trained model: an AI SDK program, recorded, trained on, and compared. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, streamText, wrapLanguageModel } from 'ai';
import { from, lastValueFrom, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { recordingMiddleware, tinker } from '../../src/ai-sdk/index.js';
import { type SamplingClient, ServiceClient, type TrainingClient } from '../../src/client/index.js';
import { answers, evaluateInto, exact } from '../../src/evals/index.js';
import { LocalTinker } from '../../src/local/index.js';
import { batch, repeatEpochs, toDatums, train } from '../../src/operators/index.js';
import { recordCalls, type RecordCallsOptions, serveSampler, serveUpstream } from '../../src/serve/index.js';
import { fromJsonl, fromRecorded, type RecordedCall } from '../../src/sources/index.js';
import { run } from '../unit/cli/terminal.js';

interface Fact {
  readonly question: string;
  readonly answer: string;
}

const facts = new URL('../../examples/data/facts.jsonl', import.meta.url);
const folder = mkdtempSync(join(tmpdir(), 'tinker-rx-traffic-'));
const path = (name: string) => join(folder, name);
let local: LocalTinker;
let service: ServiceClient;
let teacher: SamplingClient;
let known: readonly Fact[];

const learn = async (trainer: TrainingClient, rows: readonly unknown[]): Promise<SamplingClient> => {
  const batches = from(rows).pipe(
    toDatums(await trainer.getRenderer()),
    batch({ size: 8 }),
    repeatEpochs({ epochs: 20 }),
  );
  await lastValueFrom(batches.pipe(train(trainer, { loss: 'cross_entropy', adam: { learningRate: 5e-3 } })));
  return trainer.saveWeightsAndGetSamplingClient();
};

beforeAll(async () => {
  local = await LocalTinker.start();
  service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, telemetry: false });
  known = (await lastValueFrom(fromJsonl<Fact>(facts).pipe(toArray()))).slice(0, 10);
  const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 16, seed: 1 });
  const said = known.map(({ question, answer }) => ({ prompt: question, completion: answer }));
  teacher = await learn(trainer, said);
});
afterAll(async () => {
  await service.close();
  await local.close();
  rmSync(folder, { recursive: true });
});

describe('from traffic to training', () => {
  it('recorded calls of an AI SDK program train a model that `eval compare` finds better, and no key is in the file', async () => {
    const product = await serveSampler(teacher, { modelName: 'large', apiKey: 'key-of-the-product' });
    const redact: RecordCallsOptions['redact'] = (line) =>
      JSON.parse(JSON.stringify(line).replaceAll('Ada Lovelace', 'NAME')) as typeof line;
    const gateway = await serveUpstream({
      upstream: product.baseURL,
      upstreamKey: product.apiKey,
      record: recordCalls(path('calls.jsonl'), { redact }),
    });
    // The program: it knows nothing of the recording but the address.
    const headers = {
      ...{ 'x-customer': 'name-of-a-customer', cookie: 'session=cookie-of-a-customer' },
      ...{ 'x-api-key': gateway.apiKey, 'proxy-authorization': 'Basic proxy-of-a-customer' },
    };
    const provider = createOpenAICompatible({
      ...{ name: 'product', baseURL: gateway.baseURL, apiKey: gateway.apiKey, headers },
      queryParams: { api_key: 'query-of-a-customer' },
    });
    for (const { question, answer } of known) {
      const { text, response } = await generateText({
        model: provider.chatModel('large'),
        prompt: question,
        ...{ temperature: 0, maxOutputTokens: 16 },
      });
      const rating = text === answer ? 'up' : 'down';
      const sent = await fetch(`${gateway.url}/feedback`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.apiKey}` },
        body: JSON.stringify({ id: response.id, rating, comment: 'says Ada Lovelace' }),
      });
      expect(await sent.json()).toStrictEqual({ recorded: true });
    }
    // What users say may hold secrets, too. This one is not rated, so nothing is trained on it.
    const secret =
      'I am Ada Lovelace. curl -H "Authorization: Bearer said-by-a-user" "https://x.test/?token=url-of-a-user"';
    await generateText({ model: provider.chatModel('large'), prompt: secret, maxOutputTokens: 16 });
    await gateway.close();
    await product.close();

    const written = readFileSync(path('calls.jsonl'), 'utf8');
    for (const secret of [
      gateway.apiKey,
      product.apiKey,
      local.apiKey,
      ...['name-of-a-customer', 'cookie-of-a-customer', 'proxy-of-a-customer', 'query-of-a-customer'],
      ...['said-by-a-user', 'url-of-a-user', 'Ada Lovelace'],
      ...['authorization', 'x-api-key', 'cookie', 'x-customer', 'api_key'],
    ])
      expect(written).not.toContain(secret);
    expect(written).toContain('I am NAME. curl -H \\"Authorization: [redacted]\\" \\"https://x.test/?token=[redacted]');
    const calls = await lastValueFrom(fromRecorded(path('calls.jsonl'), { as: 'calls' }).pipe(toArray()));
    expect(calls).toHaveLength(11);
    expect(
      calls
        .slice(0, 10)
        .every(({ latencyMs, status, rating }) => latencyMs >= 0 && status === 200 && rating !== undefined),
    ).toBe(true);

    // The dataset: what users liked.
    const liked = await lastValueFrom(fromRecorded(path('calls.jsonl'), { minRating: 1 }).pipe(toArray()));
    expect(liked.length).toBeGreaterThanOrEqual(8);
    const tasks = fromRecorded(path('calls.jsonl'), { as: 'tasks', minRating: 1 });
    const small = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 16, seed: 2 });
    const renderer = await small.getRenderer();
    const measure = (name: string, sampler: SamplingClient) =>
      lastValueFrom(
        tasks.pipe(
          evaluateInto(path(name), answers({ renderer }), {
            ...{ sampler, scorers: [exact()], samplingParams: { maxTokens: 16, temperature: 0 } },
          }),
          toArray(),
        ),
      );
    await measure('before.jsonl', await small.saveWeightsAndGetSamplingClient());
    await measure('after.jsonl', await learn(small, liked));
    vi.stubEnv('NO_COLOR', '1');
    const compared = await run(['eval', 'compare', path('before.jsonl'), path('after.jsonl'), '--fail-if-worse']);
    vi.unstubAllEnvs();
    expect(compared.code, compared.stderr).toBe(0);
    expect(compared.stdout).toMatch(/Verdict\s+better/);
  });

  it('the middleware of the AI SDK records whole and streamed answers of any model, by the id of the response', async () => {
    const recorder = recordCalls(path('middleware.jsonl'));
    const model = wrapLanguageModel({
      model: tinker(teacher, { modelId: 'teacher', samplingParams: { maxTokens: 16, temperature: 0 } }),
      middleware: recordingMiddleware(recorder),
    });
    const { question } = known[0]!;
    const whole = await generateText({
      model,
      system: 'Be brief.',
      prompt: question,
      headers: { 'x-secret': 'of-a-header' },
    });
    recorder.feedback({ id: whole.response.id, rating: 1, correction: 'Better.' });
    const streamed = streamText({ model, prompt: question });
    const text = await streamed.text;
    recorder.feedback({ id: (await streamed.response).id, rating: -1 });
    recorder.close();
    expect(readFileSync(path('middleware.jsonl'), 'utf8')).not.toContain('of-a-header');
    const calls = await lastValueFrom(fromRecorded(path('middleware.jsonl'), { as: 'calls' }).pipe(toArray()));
    expect(calls).toMatchObject([
      { api: 'ai-sdk', model: 'teacher', rating: 1, correction: 'Better.', reply: { content: whole.text } },
      { api: 'ai-sdk', model: 'teacher', rating: -1, reply: { content: text } },
    ] satisfies Partial<RecordedCall>[]);
    expect(calls[0]!.messages).toStrictEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: question },
    ]);
  });
});
