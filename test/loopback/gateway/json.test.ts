import { describe, expect, it } from 'vitest';
import { thought } from '../support/thinkingRenderer.js';
import { SchemaChecker } from '../../../src/serve/json/SchemaChecker.js';
import { closeAfterEach, serving, user } from './serving.js';

closeAfterEach();

const CHAT = '/v1/chat/completions';
const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const asking = (schema: object, rest: object = {}) => ({
  messages: user('x'),
  response_format: { type: 'json_schema', json_schema: { name: 'a', schema } },
  ...rest,
});

it.each([
  'https://json-schema.org/draft/2020-12/schema',
  'https://json-schema.org/draft/2019-09/schema',
  'http://json-schema.org/draft-07/schema#',
  'http://json-schema.org/draft-06/schema#',
  'http://json-schema.org/draft-04/schema#',
])('checks an answer by a schema of %s', async ($schema) => {
  const gateway = await serving(['{"city": 1}', '{"city": "Paris"}']);
  const { status, json } = await gateway.post(CHAT, asking({ $schema, ...city }));
  expect({ status, json }).toMatchObject({
    status: 200,
    json: { choices: [{ message: { content: '{"city": "Paris"}' } }] },
  });
});

it('knows tuples of the newest draft without its name, as Pydantic writes them', async () => {
  const schema = { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], items: false };
  const gateway = await serving(['["a", 1, 2]', '["a", 1]']);
  const { text } = await gateway.post(CHAT, asking(schema));
  expect(text).toContain('[\\"a\\", 1]');
});

it.each([
  ['```json\n{"city": "Paris"}\n```'],
  ['Here it is:\n```\n{"city": "Paris"}\n```\nAnything else?'],
  ['```json\n{"city": "Paris"}```'],
])('takes JSON out of its fence: %j', async (reply) => {
  const gateway = await serving([reply], { jsonRetries: 0 });
  for (const response_format of [asking(city).response_format, { type: 'json_object' }]) {
    const { json } = await gateway.post(CHAT, { messages: user('x'), response_format });
    expect(json).toMatchObject({ choices: [{ message: { content: '{"city": "Paris"}' } }] });
  }
});

describe('seeds and usage', () => {
  it('choices are sampled together, and only what does not fit is sampled again, with another seed', async () => {
    const good = '{"city": "Paris"}';
    const gateway = await serving(['no', good, 'no', good, good]);
    const { json } = await gateway.post(CHAT, asking(city, { n: 3, seed: 7 }));
    expect((json as { choices: unknown[] }).choices).toHaveLength(3);
    const [first, ...again] = gateway.asked;
    expect(first).toMatchObject({ numSamples: 3, samplingParams: { seed: 7 } });
    const seeds = gateway.asked.map(({ samplingParams }) => samplingParams?.seed);
    expect(again.every(({ numSamples }) => numSamples === 1)).toBe(true);
    expect(new Set(seeds).size).toBe(seeds.length);
  });

  it('tokens of answers that were thrown away are counted', async () => {
    const gateway = await serving(['no', 'nope', '{"city": "P"}']);
    const { json } = await gateway.post(CHAT, asking(city));
    const tokens = gateway.asked.map(({ prompt }) => prompt.length);
    expect(json).toMatchObject({
      usage: {
        prompt_tokens: tokens.reduce((sum, length) => sum + length, 0),
        completion_tokens: 'no'.length + 'nope'.length + '{"city": "P"}'.length + 3,
      },
    });
  });
});

it('a schema that cannot be used is a 400, and nothing is sampled', async () => {
  const gateway = await serving(['{}']);
  const { status, text } = await gateway.post(CHAT, asking({ type: 'nonsense' }));
  expect([status, text, gateway.asked.length]).toEqual([400, expect.stringContaining('JSON schema') as string, 0]);
});

it('a pattern without end is given up, and meanwhile others are checked', async () => {
  const checker = new SchemaChecker(1000);
  const evil = { type: 'string', pattern: '^(a+)+$' };
  const text = JSON.stringify(`${'a'.repeat(40)}!`);
  let given = false;
  const slow = checker.check(evil, text).finally(() => (given = true));
  slow.catch(() => undefined);
  expect(await checker.check(city, '{}')).toContain("must have required property 'city'");
  expect(given).toBe(false);
  await expect(slow).rejects.toThrow('takes longer than 1000 ms');
  // The same schema is not tried again.
  await expect(checker.check(evil, '"a"')).rejects.toThrow('takes longer');
  await checker.close();
});

it('thinks before its JSON', async () => {
  const gateway = await serving([thought('Paris?', '{"city": "Paris"}')]);
  const { json } = await gateway.post(CHAT, asking(city));
  expect(json).toMatchObject({ choices: [{ message: { reasoning_content: 'Paris?', content: '{"city": "Paris"}' } }] });
});
