import { BinaryReader } from '@bufbuild/protobuf/wire';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ModelInputChunk } from '../../../src/wire/chunk.js';
import { prepareDatum } from '../../../src/wire/datum.js';
import { ModelInput } from '../../../src/wire/modelInput.js';
import {
  decodeForwardBackwardOutput,
  encodeForwardBackwardOutput,
} from '../../../src/wire/proto/forwardBackwardOutput.js';
import {
  checkEncodable,
  decodeForwardBackwardRequest,
  encodeForwardBackwardRequest,
} from '../../../src/wire/proto/forwardBackwardRequest.js';
import { encodeMessage, type MessageWriter } from '../../../src/wire/proto/messageWriter.js';
import { decodeSampleResponse, encodeSampleResponse } from '../../../src/wire/proto/sampleResponse.js';
import { TensorData } from '../../../src/wire/tensor.js';

const sample = (fields: object = {}) => ({
  sequences: [{ stopReason: 'stop' as const, tokens: Int32Array.of(1, 2), logprobs: Float32Array.of(-1, -2) }],
  promptCacheHitTokens: 0,
  ...fields,
});

describe('a forward-backward request', () => {
  const chunks: ModelInputChunk[] = [
    { type: 'encoded_text', tokens: Int32Array.of(1, 2, 2 ** 31 - 1) },
    { type: 'image', data: Uint8Array.of(9, 8), format: 'jpeg', expectedTokens: 4 },
    { type: 'image', data: Uint8Array.of(7), format: 'png' },
    { type: 'dmel', dmel: Uint8Array.of(0, 2, 3, 80) },
  ];
  const datum = prepareDatum(
    {
      modelInput: ModelInput.fromInts([1, 2, 3]),
      lossFnInputs: { target_tokens: [2, 3, 4], weights: [0, 0.5, 1], extra: [[0, 0, 0, 0, 1]] },
      modelInputSpans: [
        { type: 'prompt', sequenceId: 'a', offset: 0, length: 2 },
        { type: 'sampled', sequenceId: 'b', offset: 300, length: 1 },
      ],
      lossFnInputSpans: [{ type: 'sampled', sequenceId: 'b', offset: 0, length: 3 }],
    },
    0,
  );

  it('comes back as it went', () => {
    const request = {
      modelId: 'session:train:0',
      seqId: 70_000,
      data: [datum, prepareDatum({ modelInput: new ModelInput(chunks), lossFnInputs: {} }, 1)],
      lossFn: 'ppo',
      lossFnConfig: { clip_low_threshold: 0.8, mode: 'fast', empty: '', zero: 0 },
      forwardOnly: true,
    };
    expect(decodeForwardBackwardRequest(encodeForwardBackwardRequest(request))).toStrictEqual(request);
  });

  it('leaves out what is not there', () => {
    const request = { modelId: 'm', seqId: 1, data: [], lossFn: 'cross_entropy', forwardOnly: false };
    expect(decodeForwardBackwardRequest(encodeForwardBackwardRequest(request))).toStrictEqual(request);
  });

  it('has no place for an image pointer', () => {
    const modelInput = new ModelInput([{ type: 'image_asset_pointer', location: 'x', format: 'png' }]);
    const data = [prepareDatum({ modelInput, lossFnInputs: {} }, 0)];
    expect(() => checkEncodable(data)).toThrow(
      'data[0].modelInput: image_asset_pointer chunks have no place in a training request; send the image itself',
    );
  });

  it('comes back for any tokens and tensors', () => {
    const tokens = fc.array(fc.integer({ min: 0, max: 2 ** 31 - 1 }), { minLength: 1, maxLength: 50 });
    const integers = fc.array(fc.maxSafeInteger(), { maxLength: 20 });
    fc.assert(
      fc.property(tokens, integers, fc.float32Array({ maxLength: 20 }), fc.string(), (ids, whole, floats, name) => {
        const lossFnInputs = { whole: TensorData.from(whole, 'int64'), floats: TensorData.from(floats) };
        const request = {
          modelId: name,
          seqId: 1,
          data: [{ modelInput: ModelInput.fromInts(ids), lossFnInputs }],
          lossFn: 'x',
          forwardOnly: false,
        };
        expect(decodeForwardBackwardRequest(encodeForwardBackwardRequest(request))).toStrictEqual(request);
      }),
    );
  });
});

describe('a forward-backward output', () => {
  const output = {
    lossFnOutputType: 'TensorLogprobs',
    lossFnOutputs: [
      { logprobs: TensorData.from([-1, -2], 'float32'), counts: TensorData.from([3]) },
      { logprobs: TensorData.from([-3], 'float32'), counts: TensorData.from([4]) },
      {
        logprobs: TensorData.from(
          [
            [1, 2],
            [3, 4],
          ],
          'float32',
        ),
        counts: TensorData.from([5]),
      },
    ],
    metrics: { 'loss:sum': 1.5, 'clock_cycle:unique': 7 },
  };

  it('comes back as it went, also where shapes differ', () => {
    expect(decodeForwardBackwardOutput(encodeForwardBackwardOutput(output))).toStrictEqual(output);
  });

  it('has the part of its type after the last colon', () => {
    const named = (type: string) =>
      decodeForwardBackwardOutput(encodeForwardBackwardOutput({ ...output, lossFnOutputType: type })).lossFnOutputType;
    expect(named('tml:loss:Scalar')).toBe('Scalar');
    expect(named('')).toBe('ArrayRecord');
  });

  it('counts its datums by num_datums, though their fields were stripped', () => {
    const bytes = encodeMessage((writer) => writer.message(2, (record) => record.int(3, 4)));
    expect(decodeForwardBackwardOutput(bytes).lossFnOutputs).toEqual([{}, {}, {}, {}]);
  });

  it('is refused when a tensor has a dtype that is none', () => {
    const bytes = encodeMessage((writer) =>
      writer.message(2, (record) => record.entry(2, 'a', (entry) => entry.message(2, (tensor) => tensor.int(3, 9)))),
    );
    expect(() => decodeForwardBackwardOutput(bytes)).toThrow(new RangeError('unsupported tensor dtype 9'));
  });
});

describe('a sample', () => {
  const topk = { tokenIds: Int32Array.of(1, 2, 3, 4), logprobs: Float32Array.of(-1, -2, -3, -99999), k: 2, length: 2 };

  it('comes back as it went', () => {
    const full = sample({
      sequences: [
        {
          stopReason: 'length',
          tokens: Int32Array.of(5),
          logprobs: Float32Array.of(-1),
          topkLogprobs: { ...topk, length: 2 },
        },
        { stopReason: 'stop', tokens: new Int32Array() },
      ],
      promptLogprobs: Float32Array.of(NaN, -1),
      topkPromptLogprobs: topk,
      targetPromptLogprobs: TensorData.from([[0, 0, 0, 0, -1.5]], 'float32').toSparse(),
      promptAltTokens: { tokens: TensorData.from([[1, 2]]), logprobs: TensorData.from([[-1, -2]], 'float32') },
      promptCacheHitTokens: 12,
    });
    expect(decodeSampleResponse(encodeSampleResponse(full as never))).toStrictEqual(full);
  });

  it.each([
    [
      'a stop reason that is none',
      (writer: MessageWriter) => writer.message(1, (sequence) => sequence.int(1, 7)),
      'unknown stop reason 7',
    ],
    [
      'top-k arrays of another size',
      (writer: MessageWriter) => writer.message(3, (topkMessage) => topkMessage.int(3, 2).int(4, 2)),
      'top-k arrays do not match their size',
    ],
    [
      'half the alternatives',
      (writer: MessageWriter) => writer.message(6, () => undefined),
      'alternative tokens lack a tensor',
    ],
  ])('is refused with %s', (_, write, said) => {
    expect(() => decodeSampleResponse(encodeMessage(write))).toThrow(new RangeError(said));
  });

  it('skips what a newer server adds', () => {
    const bytes = encodeMessage((writer) => writer.string(99, 'new').int(98, 7).double(97, 1));
    expect(decodeSampleResponse(bytes)).toStrictEqual({ sequences: [], promptCacheHitTokens: 0 });
  });
});

describe('a message', () => {
  it('is refused when it is not written as it was measured', () => {
    const changing = (second: (writer: MessageWriter) => unknown): (() => Uint8Array) => {
      let calls = 0;
      return () => encodeMessage((writer) => (calls++ === 0 ? writer.string(1, 'same') : second(writer)));
    };
    const said = 'a message was not the same when it was measured and when it was written';
    expect(changing((writer) => writer)).toThrow(said);
    expect(changing((writer) => writer.int(1, 1))).toThrow(said);
    expect(changing((writer) => writer.string(1, 'same'))).not.toThrow();
  });

  it('holds nested messages of every length, and integers of every width', () => {
    const text = 'x'.repeat(20_000);
    const bytes = encodeMessage((writer) =>
      writer.message(1, (nested) => nested.message(2, (inner) => inner.string(3, text)).int(4, 2 ** 40)),
    );
    const outer = new BinaryReader(bytes);
    expect(outer.tag()).toEqual([1, 2]);
    const nested = new BinaryReader(outer.bytes());
    expect(nested.tag()).toEqual([2, 2]);
    const inner = new BinaryReader(nested.bytes());
    expect(inner.tag()).toEqual([3, 2]);
    expect(inner.string()).toBe(text);
    expect(nested.tag()).toEqual([4, 0]);
    expect(nested.uint64()).toBe(BigInt(2 ** 40));
    expect([outer.pos, nested.pos, inner.pos]).toEqual([outer.len, nested.len, inner.len]);
  });
});
