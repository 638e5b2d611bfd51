import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { isLeft } from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { ModelInput } from '../../../src/wire/modelInput.js';
import { prepareDatum } from '../../../src/wire/datum.js';
import { decodeForwardBackwardOutput } from '../../../src/wire/proto/forwardBackwardOutput.js';
import {
  decodeForwardBackwardRequest,
  encodeForwardBackwardRequest,
} from '../../../src/wire/proto/forwardBackwardRequest.js';
import { combineOutputs } from '../../../src/wire/combineOutputs.js';
import { describeErrors } from '../../../src/wire/record.js';
import { FuturesRetrieveResponse } from '../../../src/wire/futures.js';
import { CheckpointsListResponse } from '../../../src/wire/rest.js';
import { SampleResponseJson, topkFromRows } from '../../../src/wire/sampling.js';
import { ClientConfig, CreateSessionRequest, DynamicConfig } from '../../../src/wire/session.js';
import { TensorData, TensorDataCodec, TensorResultCodec } from '../../../src/wire/tensor.js';
import { ForwardBackwardOutputJson, OptimStepResponse } from '../../../src/wire/training.js';
import { expectDecoded, expectRefused } from './decoding.js';

const pass = (data: unknown, dtype = 'float32') => ({ loss_fn_outputs: [{ logprobs: { data, dtype } }] });
const sequence = (fields: object) => ({ sequences: [{ stop_reason: 'stop', tokens: [1], ...fields }] });

describe('a tensor in a JSON result', () => {
  it('of 200,000 nulls is read without overflowing the stack', () => {
    const nulls = new Array(200_000).fill(null);
    const decoded = ForwardBackwardOutputJson.decode(pass(nulls));
    expect(decoded).toMatchObject({ _tag: 'Right' });
    expectRefused(
      ForwardBackwardOutputJson,
      pass(nulls, 'int64'),
      'loss_fn_outputs.0.logprobs.data.0: expected number',
    );
    expectRefused(TensorDataCodec, { data: nulls, dtype: 'float32' }, 'data.0: expected number');
  });

  it('with one null failed the whole pass: null is how JSON writes NaN', () => {
    expectDecoded(TensorResultCodec, { data: [1, null], dtype: 'float32' }, TensorData.from([1, NaN], 'float32'));
  });

  it('may have keys that this release does not know', () => {
    expectDecoded(TensorResultCodec, { data: [1], dtype: 'int64', device: 'cuda', shape: null }, TensorData.from([1]));
  });

  it('is refused for indices and extents that are none', () => {
    const sparse = { data: [1], dtype: 'float32', shape: [1, 4], sparse_crow_indices: [0, 1] };
    expectRefused(
      TensorResultCodec,
      { ...sparse, sparse_col_indices: [2 ** 40] },
      'sparse_col_indices: entry 0 is not an index',
    );
    expectRefused(
      TensorResultCodec,
      { ...sparse, sparse_col_indices: 'x' },
      'sparse_col_indices: expected Array<number>',
    );
    expectRefused(
      TensorResultCodec,
      { data: [1], dtype: 'float32', shape: [0.5, 2] },
      'shape: expected Array<an integer ≥ 0>',
    );
    expectRefused(TensorResultCodec, [], 'expected TensorData');
  });
});

describe('300,000 bad entries', () => {
  const many = new Array(300_000).fill(7);
  it.each([
    ['a list of texts in a request', () => CreateSessionRequest.prepare({ tags: many as never, sdkVersion: '1' })],
    ['a list of texts in an answer', () => CreateSessionRequest.decode({ tags: many, sdk_version: '1' })],
    ['a list of records', () => CheckpointsListResponse.decode({ checkpoints: many })],
    ['a list of completions', () => FuturesRetrieveResponse.decode({ completions: many, cursor: 0 })],
    [
      'a map of numbers',
      () => OptimStepResponse.decode({ metrics: Object.fromEntries(many.map((_, at) => [at, 'x'])) }),
    ],
    ['top-k pairs', () => SampleResponseJson.decode(sequence({ topk_logprobs: [many] }))],
    [
      'sparse indices',
      () => TensorDataCodec.decode({ data: [], dtype: 'int64', sparse_col_indices: many.map(String) }),
    ],
  ])('overflowed the stack in %s', (_, read) => {
    const result = read();
    expect(isLeft(result)).toBe(true);
    if (isLeft(result)) expect(describeErrors(result.left).length).toBeLessThan(1000);
  });
});

describe('top-k pairs in JSON', () => {
  it('name the first that is none', () => {
    const rows = (...pairs: unknown[]) => sequence({ topk_logprobs: [null, pairs] });
    for (const bad of [7, [1], [1, 'x'], [1.5, 0], [1, 0, 0], null])
      expectRefused(
        SampleResponseJson,
        rows([5, -1], bad),
        'sequences.0.topk_logprobs: entry 1.1 is not a [token, logprob] pair',
      );
    expectRefused(
      SampleResponseJson,
      sequence({ topk_logprobs: [7] }),
      'sequences.0.topk_logprobs: entry 0 is not a [token, logprob] pair',
    );
  });

  it('take null for a logprob that is not finite', () => {
    expect(topkFromRows([[[5, null]]]).logprobs).toStrictEqual(Float32Array.of(NaN));
  });

  it('whose one long row would make a table of ten thousand million cells are refused before there is one', () => {
    const rows = [Array.from({ length: 100_000 }, () => [1, -1]), ...new Array<null>(100_000).fill(null)];
    expectRefused(
      SampleResponseJson,
      sequence({ topk_logprobs: rows }),
      'sequences.0.topk_logprobs: 100001 rows of up to 100000 pairs are too many',
    );
  });
});

describe('a protobuf result', () => {
  const record = (write: (writer: BinaryWriter) => BinaryWriter): Uint8Array =>
    new BinaryWriter().tag(2, 2).bytes(write(new BinaryWriter()).finish()).finish();

  it('of eight bytes that counts 2³² − 1 datums aborted the client for memory', () => {
    const bytes = record((writer) => writer.tag(3, 0).int64(2 ** 32 - 1));
    expect(bytes).toHaveLength(8);
    expect(() => decodeForwardBackwardOutput(bytes)).toThrow('records without fields count 4294967295 datums');
    const half = record((writer) => writer.tag(3, 0).int64(2 ** 20));
    expect(() => decodeForwardBackwardOutput(Buffer.concat([half, half]))).toThrow(RangeError);
    expect(decodeForwardBackwardOutput(record((writer) => writer.tag(3, 0).int64(3))).lossFnOutputs).toEqual([
      {},
      {},
      {},
    ]);
  });

  it.each([
    ['fall', [8, 0]],
    ['lie outside', [0, 64]],
    ['are negative', [-4, 4]],
    ['part a value', [0, 3]],
  ])('whose offsets %s is refused', (_, offsets) => {
    const tensor = new BinaryWriter()
      .tag(1, 2)
      .bytes(new Uint8Array(8))
      .tag(2, 2)
      .bytes(new Uint8Array(BigInt64Array.from(offsets.map(BigInt)).buffer))
      .tag(3, 0)
      .int32(1);
    const entry = new BinaryWriter().tag(1, 2).string('logprobs').tag(2, 2).bytes(tensor.finish());
    const bytes = record((writer) => writer.tag(2, 2).bytes(entry.finish()));
    expect(() => decodeForwardBackwardOutput(bytes)).toThrow(
      'the offsets of a batched tensor must rise within its data',
    );
  });

  it('with a part of a row has no such shape', () => {
    expect(() => new TensorData({ dtype: 'float32', data: new Float32Array(2), shape: [0.5, 4] })).toThrow(
      'every extent must be an integer ≥ 0',
    );
  });
});

describe('names that every object has', () => {
  const metrics = JSON.parse('{"__proto__":1,"constructor":2,"toString:sum":3,"a:constructor":4}') as Record<
    string,
    number
  >;

  it('are metrics like any others in JSON', () => {
    expectDecoded(OptimStepResponse, { metrics }, { metrics });
  });

  it('are metrics like any others in protobuf', () => {
    const writer = new BinaryWriter();
    for (const [key, value] of Object.entries(metrics))
      writer.tag(3, 2).bytes(new BinaryWriter().tag(1, 2).string(key).tag(2, 1).double(value).finish());
    expect(Object.entries(decodeForwardBackwardOutput(writer.finish()).metrics)).toEqual(Object.entries(metrics));
  });

  it('are no reductions: metrics with these names are added up', () => {
    const output = { lossFnOutputType: '', lossFnOutputs: [{}], metrics };
    expect(Object.entries(combineOutputs([output, output]).metrics)).toEqual([['toString:sum', 6]]);
  });

  it('are float32 tensors when they hold fractions', () => {
    const lossFnInputs = { constructor: [0.5], target_tokens: [7] } as unknown as Record<string, number[]>;
    const datum = prepareDatum({ modelInput: ModelInput.fromInts([1]), lossFnInputs }, 0);
    expect(datum.lossFnInputs['constructor']).toMatchObject({ dtype: 'float32', shape: [1] });
  });

  it('are tensors and config like any others', () => {
    const lossFnInputs = JSON.parse('{"__proto__":[1],"target_tokens":[7]}') as Record<string, number[]>;
    const datum = prepareDatum({ modelInput: ModelInput.fromInts([1]), lossFnInputs }, 0);
    expect(Object.keys(datum.lossFnInputs)).toEqual(['__proto__', 'target_tokens']);
    const lossFnConfig = JSON.parse('{"__proto__":1}') as Record<string, number>;
    const request = { modelId: 'm', seqId: 1, data: [datum], lossFn: 'custom', lossFnConfig, forwardOnly: false };
    const decoded = decodeForwardBackwardRequest(encodeForwardBackwardRequest(request));
    expect(Object.keys(decoded.data[0]!.lossFnInputs)).toEqual(['__proto__', 'target_tokens']);
    expect(Object.entries(decoded.lossFnConfig!)).toEqual([['__proto__', 1]]);
  });
});

it('negative budgets in the flags are refused: whatever takes of one would wait for ever', () => {
  for (const flag of [
    'sample_dispatch_bytes_semaphore_size',
    'inflight_response_bytes_semaphore_size',
    'fwdbwd_dispatch_bytes_semaphore_size',
  ])
    expectRefused(ClientConfig, { [flag]: -1 }, `${flag}: expected an integer ≥ 0`);
  expectRefused(DynamicConfig, { refresh_interval_sec: 'x' }, 'refresh_interval_sec: expected a finite number');
});

it('a key of an answer brings no terminal escape into an error', () => {
  expectRefused(OptimStepResponse, { metrics: { '\u001b[31mred\n': 'x' } }, 'metrics. [31mred: expected number');
});

it('a datum with a misspelt key is refused', () => {
  const datum = { modelInput: ModelInput.fromInts([1]), lossFnInputs: {}, lossFnInput: {} };
  expect(() => prepareDatum(datum as never, 3)).toThrow(
    'data[3]: unknown key lossFnInput; expected modelInput, lossFnInputs, modelInputSpans, lossFnInputSpans',
  );
});
