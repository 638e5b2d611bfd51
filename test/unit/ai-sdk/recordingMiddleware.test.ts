/** The recording middleware with streams that fail, are cancelled, or end without a word. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { recordingMiddleware } from '../../../src/ai-sdk/index.js';
import { recordCalls } from '../../../src/serve/index.js';
import type { RecordedCall } from '../../../src/sources/index.js';

interface Part {
  readonly type: string;
  readonly id?: string;
  readonly delta?: string;
  readonly error?: unknown;
  readonly finishReason?: unknown;
}
let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'tinker-rx-middleware-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const lines = (): RecordedCall[] =>
  readFileSync(join(folder, 'calls.jsonl'), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as RecordedCall);

const BEGINNING: readonly Part[] = [
  { type: 'response-metadata', id: 'r-1' },
  { type: 'text-start', id: '0' },
  { type: 'text-delta', id: '0', delta: 'Half' },
];

async function streamed(parts: readonly Part[], { ends = true } = {}): Promise<ReadableStream<Part>> {
  const middleware = recordingMiddleware(recordCalls(join(folder, 'calls.jsonl')));
  const stream = new ReadableStream<Part>({
    start: (controller) => {
      for (const part of parts) controller.enqueue(part);
      if (ends) controller.close();
    },
  });
  const params = { prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] };
  const wrapped = await middleware.wrapStream({
    ...{ params, model: { modelId: 'm' }, doStream: () => Promise.resolve({ stream }) },
  });
  return wrapped.stream;
}
const read = async (stream: ReadableStream<Part>) => {
  const found: Part[] = [];
  for await (const part of stream) found.push(part);
  return found;
};

it('writes a stream with an error once, without a reply, also where a finish follows', async () => {
  const failed = [...BEGINNING, { type: 'error', error: 'overloaded' }, { type: 'finish', finishReason: 'error' }];
  expect(await read(await streamed(failed))).toStrictEqual(failed);
  expect(lines()).toMatchObject([{ id: 'r-1', status: 500 }]);
  expect(lines()[0]).not.toHaveProperty('reply');
});

it('writes a stream that ends without a finish, without a reply', async () => {
  await read(await streamed(BEGINNING));
  expect(lines()).toMatchObject([{ id: 'r-1', status: 500 }]);
  expect(lines()[0]).not.toHaveProperty('reply');
});

it('writes a stream that its reader cancels, without a reply', async () => {
  const reader = (await streamed(BEGINNING, { ends: false })).getReader();
  await reader.read();
  await reader.cancel();
  expect(lines()).toMatchObject([{ id: 'r-1', status: 499, model: 'm' }]);
  expect(lines()[0]).not.toHaveProperty('reply');
});
