import { generateText, isStepCount, jsonSchema, streamText, tool } from 'ai';
import { from, lastValueFrom } from 'rxjs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tinker } from '../../src/ai-sdk/index.js';
import { ServiceClient, type SamplingClient } from '../../src/index.js';
import { LocalTinker } from '../../src/local/index.js';
import { batch, repeatEpochs, toDatums, train } from '../../src/operators/index.js';

let local: LocalTinker;
let service: ServiceClient;
let sampler: SamplingClient;

const question = { role: 'user', content: 'Sum of 2 and 3?' };
const asking = { role: 'assistant', content: '', toolCalls: [{ name: 'add', arguments: '{"a": 2, "b": 3}' }] };
const answered = { role: 'tool', name: 'add', content: '5' };
const saying = { role: 'assistant', content: 'It is 5.' };

const add = tool({
  description: 'Adds.',
  inputSchema: jsonSchema<{ a: number; b: number }>({ type: 'object' }),
  execute: ({ a, b }) => a + b,
});

beforeAll(async () => {
  local = await LocalTinker.start();
  service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey });
  const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 16, seed: 1 });
  const renderer = await trainer.getRenderer();
  const schema = { name: 'add', description: 'Adds.', parameters: { type: 'object' } };
  const talk = [...renderer.declareTools([schema]), question, asking, answered, saying];
  await lastValueFrom(
    from([{ messages: talk }]).pipe(
      toDatums(renderer, { trainOn: 'all_assistant_messages' }),
      repeatEpochs({ epochs: 25 }),
      batch({ size: 1 }),
      train(trainer, { loss: 'cross_entropy', adam: { learningRate: 1e-2 } }),
    ),
  );
  sampler = await trainer.saveWeightsAndGetSamplingClient();
});
afterAll(async () => {
  await service.close();
  await local.close();
});

it('a model trained to use a tool does so in the AI SDK’s own loop', async () => {
  const { text, steps } = await generateText({
    model: tinker(sampler, { samplingParams: { maxTokens: 64, temperature: 0 } }),
    prompt: question.content,
    tools: { add },
    stopWhen: isStepCount(3),
  });
  expect(text).toBe('It is 5.');
  expect(steps.map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop']);
});

it('streams in pieces what it generates whole', async () => {
  const model = tinker(sampler, { pieceTokens: 3, samplingParams: { maxTokens: 64, temperature: 0 } });
  const parts: string[] = [];
  const { stream } = streamText({ model, prompt: question.content, tools: { add }, stopWhen: isStepCount(3) });
  for await (const part of stream) if (part.type === 'text-delta') parts.push(part.text);
  expect(parts.join('')).toBe('It is 5.');
  expect(parts.length).toBeGreaterThan(1);
});
