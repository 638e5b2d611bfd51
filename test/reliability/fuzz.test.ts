/** Everything that reads foreign bytes, on both sides, with inputs made by seeds. `npm run test:fuzz` reads 25 times as many. */
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import * as t from 'io-ts';
import { lastValueFrom, type Observable } from 'rxjs';
import { afterAll, describe, expect, it } from 'vitest';
import { HuggingFaceTokenizer, kimiTokenizer, TokenizerError } from '../../src/chat/tokenizer/index.js';
import { imageSize } from '../../src/chat/renderers/core/images.js';
import { RendererError } from '../../src/chat/renderers/core/RendererError.js';
import { readJson } from '../../src/client/connection/answer.js';
import { isTinkerError, ModelInput, TensorData } from '../../src/index.js';
import { decodeState, encodeState, EngineUserError } from '../../src/local/engine/index.js';
import {
  fromConversations,
  fromCsv,
  fromJson,
  fromJsonl,
  fromParquet,
  fromPreferences,
  resumeFrom,
} from '../../src/sources/index.js';
import { ServerSentEventParser } from '../../src/support/http/ServerSentEventParser.js';
import * as wire from '../../src/wire/index.js';
import { fuzz } from './support/Fuzzer.js';
import { Mutator } from './support/mutate.js';
import { Report } from './support/Report.js';

const TIMES = process.env['TINKER_RX_SUITE'] === 'long' ? 25 : 1;
const report = new Report('fuzz', ['inputs fuzzed', 'crashes']);
const folder = mkdtempSync(join(tmpdir(), 'tinker-rx-fuzz-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  report.print();
});

const mutator = new Mutator(18);
const bytesOf =
  (...seeds: readonly Uint8Array[]) =>
  (index: number) =>
    index < seeds.length ? seeds[index]! : mutator.bytes(mutator.pick(seeds));
const at = (path: string): URL => new URL(path, import.meta.url);

/** An error with words of ours or of the library that reads, and none that says that our own code tripped. */
const isClear = (error: unknown): boolean =>
  error instanceof Error &&
  error.message !== '' &&
  !(error instanceof TypeError) &&
  !/call stack|Invalid (typed )?array|allocation failed|string length|is not (a function|iterable)/.test(error.message);

const tensor = (values: readonly number[], dtype: 'float32' | 'int64' = 'float32') =>
  TensorData.from([...values], dtype);
const REQUEST = wire.encodeForwardBackwardRequest({
  modelId: 'run:train:0',
  seqId: 3,
  data: [
    {
      modelInput: ModelInput.fromInts([1, 2, 3]),
      lossFnInputs: { target_tokens: tensor([2, 3, 4], 'int64'), weights: tensor([0, 1, 1]) },
    },
  ],
  lossFn: 'cross_entropy',
  lossFnConfig: { a: 1 },
  forwardOnly: false,
});
const OUTPUT = wire.encodeForwardBackwardOutput({
  lossFnOutputType: 'ArrayRecord',
  lossFnOutputs: [{ logprobs: tensor([-1, -2, -3]) }, { logprobs: tensor([-4]) }],
  metrics: { 'loss:sum': 3.5 },
});
const SAMPLE = wire.encodeSampleResponse({
  sequences: [{ stopReason: 'stop', tokens: Int32Array.of(1, 2), logprobs: Float32Array.of(-1, -2) }],
  promptLogprobs: Float32Array.of(NaN, -1),
  promptCacheHitTokens: 0,
} as unknown as wire.SampleResponse);

describe('protobuf', () => {
  it.each([
    ['an output', wire.decodeForwardBackwardOutput, OUTPUT],
    ['a sample', wire.decodeSampleResponse, SAMPLE],
    ['a request', wire.decodeForwardBackwardRequest, REQUEST],
  ] as const)('%s is read or refused', async (name, read, seed) => {
    await fuzz({ name: `protobuf, ${name}`, input: bytesOf(seed), read, refuses: isClear }, 3000 * TIMES, report);
  });
});

/** Bodies that the Python SDK or its server once sent; what is no JSON is left out. */
const recorded: readonly unknown[] = readdirSync(at('../parity/recorded/sdk/'))
  .slice(0, 40)
  .map((name) => JSON.parse(readFileSync(at(`../parity/recorded/sdk/${name}`), 'utf8')) as unknown);

function objectsIn(value: unknown, found: unknown[] = []): unknown[] {
  if (typeof value !== 'object' || value === null) return found;
  if (!Array.isArray(value)) found.push(value);
  for (const inner of Object.values(value)) objectsIn(inner, found);
  return found;
}

it('a JSON answer is read or refused by every codec', async () => {
  const seeds = objectsIn(recorded).filter((value) => JSON.stringify(value).length < 20_000);
  const codecs = Object.entries(wire).filter((entry): entry is [string, t.Mixed] => entry[1] instanceof t.Type);
  expect(codecs.length).toBeGreaterThan(40);
  const target = {
    name: 'JSON answers',
    input: () => {
      const body = JSON.stringify(mutator.json(mutator.pick(seeds)));
      return { codec: mutator.pick(codecs), body: body === undefined ? 'null' : body };
    },
    read: ({ codec: [name, codec], body }: { codec: [string, t.Mixed]; body: string }): unknown =>
      readJson({ status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(body) }, codec, name),
    refuses: (error: unknown) => isTinkerError(error) && isClear(error),
  };
  await fuzz(target, 3000 * TIMES, report);
});

it('server-sent events are read or refused, wherever they are cut', async () => {
  const text = ': hi\nretry: 500\nid: 7\nevent: step\ndata: {"loss":1}\ndata: more\n\nid\ndata\n\r\n\ufeffdata: é\r\r';
  const target = {
    name: 'server-sent events',
    input: bytesOf(Buffer.from(text)),
    read: (bytes: Uint8Array) => {
      const parser = new ServerSentEventParser('', 1 << 16);
      const all = Buffer.from(bytes).toString('utf8');
      const cut = mutator.below(all.length + 1);
      for (const part of [all.slice(0, cut), all.slice(cut)])
        for (const event of parser.push(part)) expect(event.data).toBeTypeOf('string');
    },
    refuses: isClear,
  };
  await fuzz(target, 2000 * TIMES, report);
});

const PARQUET = ['none', 'snappy', 'gzip', 'zstd', 'brotli'].map((kind) =>
  readFileSync(at(`../unit/fixtures/sources/rows.${kind}.parquet`)),
);
const CHAT =
  '{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yo","weight":1}],"tools":[]}\n';
const PREFERENCE = '{"prompt":"a","chosen":"b","rejected":[{"role":"assistant","content":"c"}]}\n';
const METRICS = '{"index":0,"loss":1,"batches":1}\n{"index":1,"loss":0.5,"batches":2}\n';
const SAVED = '{"kind":"state","path":"tinker://r/weights/a","step":1,"index":1,"batches":2,"atMs":1}\n';

describe('a file of rows', () => {
  it.each([
    ['JSONL', 'rows.jsonl', [CHAT], fromJsonl],
    ['JSONL in gzip', 'rows.jsonl.gz', [gzipSync(CHAT.repeat(20))], fromJsonl],
    ['JSON', 'rows.json', [`[${CHAT},${CHAT}]`], fromJson],
    ['CSV', 'rows.csv', ['a,b\n1,"x ""y"""\r\n2,\n'], fromCsv],
    ['Parquet', 'rows.parquet', PARQUET, fromParquet],
    ['conversations', 'chats.jsonl', [CHAT], fromConversations],
    ['preferences', 'pairs.jsonl', [PREFERENCE], fromPreferences],
  ] as const)('of %s is read or refused', async (name, file, seeds, source) => {
    const path = join(folder, file);
    const target = {
      name,
      input: bytesOf(...seeds.map((seed) => Buffer.from(seed))),
      read: async (bytes: Uint8Array) => {
        writeFileSync(path, bytes);
        await lastValueFrom(source(path) as Observable<unknown>, { defaultValue: undefined });
      },
      refuses: (error: unknown) => isTinkerError(error) && isClear(error),
    };
    await fuzz(target, 250 * TIMES, report);
  });

  it('of a run is resumed from or refused', async () => {
    const target = {
      name: 'logs of runs',
      input: (index: number) => [bytesOf(Buffer.from(METRICS))(index), bytesOf(Buffer.from(SAVED))(index)] as const,
      read: async ([metrics, checkpoints]: readonly [Uint8Array, Uint8Array]) => {
        writeFileSync(join(folder, 'metrics.jsonl'), metrics);
        writeFileSync(join(folder, 'checkpoints.jsonl'), checkpoints);
        await lastValueFrom(resumeFrom(folder));
      },
      refuses: (error: unknown) => isTinkerError(error) && isClear(error),
    };
    await fuzz(target, 250 * TIMES, report);
  });
});

it('a checkpoint is read or refused', async () => {
  const named = (size: number) => ({
    'layers.0.q.lora_A.weight': { shape: [2, size / 2], data: new Float32Array(size) },
  });
  const seed = encodeState({
    ...{ baseModel: 'tinker-rx/tiny', step: 3, weights: named(8), optimizer: { m: named(8), v: named(8) } },
    lora: { rank: 2, seed: 1, trainAttn: true, trainMlp: false, trainUnembed: false },
  });
  const header = JSON.parse(Buffer.from(seed.subarray(8, 8 + seed[0]! + 256 * seed[1]!)).toString()) as unknown;
  const content = seed.subarray(8 + seed[0]! + 256 * seed[1]!);
  const target = {
    name: 'safetensors',
    input: (index: number) => {
      if (index % 2 === 0) return bytesOf(seed)(index);
      const changed = Buffer.from(JSON.stringify(mutator.json(header)) ?? '');
      const size = Buffer.alloc(8);
      size.writeUInt32LE(changed.length);
      return Buffer.concat([size, changed, content]);
    },
    read: decodeState,
    refuses: (error: unknown) => error instanceof EngineUserError,
  };
  await fuzz(target, 2000 * TIMES, report);
});

describe('a tokenizer', () => {
  const small = (name: string): object =>
    JSON.parse(readFileSync(at(`../parity/recorded/tokenizers/small/${name}/tokenizer.json`), 'utf8')) as object;

  it.each(['byte-level', 'sentence-piece', 'word-piece'])('of Hugging Face (%s) is read or refused', async (name) => {
    const seed = small(name);
    const target = {
      name: `tokenizer.json, ${name}`,
      input: (index: number) => (index === 0 ? seed : mutator.json(seed)),
      read: (tokenizer: unknown) => {
        const made = new HuggingFaceTokenizer('fuzzed', { tokenizer: tokenizer as never });
        made.decode(made.encode('Hello, world! <s> 1234'));
      },
      refuses: (error: unknown) => error instanceof TokenizerError,
    };
    await fuzz(target, 60 * TIMES, report);
  });

  it('of tiktoken is read or refused', async () => {
    const ranks = Array.from({ length: 256 }, (_, byte) => `${Buffer.of(byte).toString('base64')} ${byte}\n`).join('');
    const target = {
      name: 'tiktoken ranks',
      input: bytesOf(Buffer.from(ranks)),
      read: async (bytes: Uint8Array) => {
        const made = await kimiTokenizer('fuzzed', { ranks: Buffer.from(bytes).toString(), config: {} });
        made.decode(made.encode('Hello, world!'));
      },
      refuses: (error: unknown) => error instanceof TokenizerError,
    };
    await fuzz(target, 60 * TIMES, report);
  });
});

it.each(['png', 'jpeg'] as const)('the size of a %s is read or refused', async (format) => {
  const png = Buffer.from('89504e470d0a1a0a0000000d49484452000000100000002008060000', 'hex');
  const jpeg = Buffer.from('ffd8ffe000104a46494600010100000100010000ffc0000b080020001001011100', 'hex');
  const target = {
    name: `images, ${format}`,
    input: bytesOf(format === 'png' ? png : jpeg),
    read: (bytes: Uint8Array) => imageSize(bytes, format),
    refuses: (error: unknown) => error instanceof RendererError,
  };
  await fuzz(target, 1000 * TIMES, report);
});
