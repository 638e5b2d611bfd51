import { isLeft } from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { prepare } from '../../../src/wire/record.js';
import {
  CompleteMetadata,
  FuturesRetrieveRequest,
  FuturesRetrieveResponse,
  isRequestFailed,
  toErrorCategory,
  toQueueState,
  UntypedFuture,
} from '../../../src/wire/futures.js';
import {
  SampleRequest,
  SampleResponseJson,
  SamplingParams,
  topkFromRows,
  topkToRows,
} from '../../../src/wire/sampling.js';
import { ClientConfig, DynamicConfig } from '../../../src/wire/session.js';
import { expectDecoded, expectRefused } from './decoding.js';

describe('SamplingParams', () => {
  it('writes defaults, but neither a stop nor a limit that was not given', () => {
    expect(prepare(SamplingParams, {})).toStrictEqual({ temperature: 1, top_k: -1, top_p: 1 });
    expect(prepare(SamplingParams, { stop: [] })['stop']).toStrictEqual([]);
    expect(prepare(SamplingParams, { stop: [1, 2], maxTokens: 5, seed: -3 })).toMatchObject({
      stop: [1, 2],
      max_tokens: 5,
      seed: -3,
    });
  });
  it.each([
    [{ stop: 5 }, 'stop: expected a list of strings or of token ids'],
    [{ top_k: 0 }, 'top_k: expected an integer ≥ 1, or -1 for all tokens'],
    [{ top_p: 0 }, 'top_p: expected a number in (0, 1]'],
    [{ temperature: -0.1 }, 'temperature: expected a finite number ≥ 0'],
    [{ max_tokens: 0 }, 'max_tokens: expected an integer ≥ 1'],
    [{ seed: 0.5 }, 'seed: expected an integer'],
  ])('decode refuses %j', (value, said) => expectRefused(SamplingParams, value, said));
  it('are read with a bare text as stop, which some clients send, and never written so', () => {
    expectDecoded(SamplingParams, { stop: 'END' }, { stop: ['END'], temperature: 1, topK: -1, topP: 1 });
    expect(() => prepare(SamplingParams, { stop: 'END' as never })).toThrow('stop: expected a list of strings');
  });
  it('of a request are named by their place', () => {
    expectRefused(
      SampleRequest,
      { prompt: { chunks: [] }, sampling_params: { top_p: 2 } },
      'sampling_params.top_p: expected a number in (0, 1]',
    );
  });
});

describe('a sample as JSON', () => {
  it('decodes with typed arrays; null is NaN', () => {
    expectDecoded(
      SampleResponseJson,
      {
        sequences: [{ stop_reason: 'stop', tokens: [1], logprobs: [-0.5], extra: 1 }],
        prompt_logprobs: [null, -1],
        type: 'sample',
      },
      {
        sequences: [{ stopReason: 'stop', tokens: Int32Array.of(1), logprobs: Float32Array.of(-0.5) }],
        promptLogprobs: Float32Array.of(NaN, -1),
        promptCacheHitTokens: 0,
      },
    );
  });
  it('refuses another stop reason', () => {
    expectRefused(
      SampleResponseJson,
      { sequences: [{ stop_reason: 'eos', tokens: [] }] },
      "sequences.0.stop_reason: expected 'length' | 'stop'",
    );
  });
  it('has top-k rows as one dense pair, and back', () => {
    const rows = [
      null,
      [
        [5, -0.1],
        [6, -2],
      ],
      [[7, -0.3]],
    ] as const;
    const topk = topkFromRows(rows.map((row) => row && row.map(([token, logprob]) => [token, logprob] as const)));
    expect(topk).toStrictEqual({
      tokenIds: Int32Array.of(0, 0, 5, 6, 7, 0),
      logprobs: Float32Array.of(-99999, -99999, -0.1, -2, -0.3, -99999),
      k: 2,
      length: 3,
    });
    expect(topkToRows(topk).map((row) => row?.map(([token]) => token))).toEqual([undefined, [5, 6], [7]]);
  });
});

describe('futures', () => {
  it('decode what they need and drop the rest', () => {
    expectDecoded(
      UntypedFuture,
      { request_id: 'r', future_id: 'f', status: 'pending', sample_sequence_ids: null },
      { requestId: 'r' },
    );
    expectRefused(UntypedFuture, { error: 'x' }, 'request_id: expected string');
    expectDecoded(
      CompleteMetadata,
      { status: 'complete_metadata', response_payload_size: 7 },
      { status: 'complete_metadata', responsePayloadSize: 7 },
    );
    expect(isLeft(CompleteMetadata.decode({ status: 'complete' }))).toBe(true);
    for (const error of ['boom', '', { message: 'boom' }, 7, ['boom'], false])
      expect(isRequestFailed({ error, category: 3 })).toBe(true);
    for (const body of [{ error: null }, {}, null, 'error', { metrics: { error: 1 } }])
      expect(isRequestFailed(body)).toBe(false);
  });
  it('know their categories and queue states in any case, and what they do not know', () => {
    expect(['user', 'USER', 'Server', 'martian', undefined, 7].map(toErrorCategory)).toEqual([
      'user',
      'user',
      'server',
      'unknown',
      'unknown',
      'unknown',
    ]);
    expect(['active', 'paused_capacity', 'paused_rate_limit', 'asleep', undefined].map(toQueueState)).toEqual([
      'active',
      'paused_capacity',
      'paused_rate_limit',
      'unknown',
      'unknown',
    ]);
  });
  it('of a session are asked for by clone and cursor', () => {
    const target = { type: 'sampling_session' as const, samplingSessionId: 's', clonedSamplerId: 0 };
    expect(FuturesRetrieveRequest.encode({ target, prevCursor: 0, retrievedRequestIds: [] })).toStrictEqual({
      target: { type: 'sampling_session', sampling_session_id: 's', cloned_sampler_id: 0 },
      prev_cursor: 0,
      retrieved_request_ids: [],
    });
    expectRefused(
      FuturesRetrieveResponse,
      { completions: [{ state: 'lost', request_id: 'r' }], cursor: 1 },
      `completions.0.state: expected ("finished" | "failed")`,
    );
  });
});

describe('flags', () => {
  it('have their defaults, also where a server says null or nothing', () => {
    const defaults = ClientConfig.decode({});
    expectDecoded(
      ClientConfig,
      { parallel_fwdbwd_chunks: null, new_flag: 1 },
      isLeft(defaults) ? undefined : defaults.right,
    );
    expectDecoded(
      DynamicConfig,
      {},
      { refreshIntervalSec: 300, sampleCancelEnabled: false, sampleCancelMaxBatchSize: 64 },
    );
    expect(ClientConfig.encode({} as never)).toMatchObject({
      sample_dispatch_bytes_semaphore_size: 10_485_760,
      inflight_response_bytes_semaphore_size: 52_428_800,
      fwdbwd_max_chunk_len: 1024,
      fwdbwd_max_chunk_bytes_count: 5_000_000,
      fwdbwd_dispatch_bytes_semaphore_size: 50_000_000,
      billing_exception_max_pause_duration_sec: 3600,
      sample_max_concurrent_requests: 2000,
    });
  });
  it('of the wrong type are refused', () => {
    expectRefused(ClientConfig, { fwdbwd_max_chunk_len: 0 }, 'fwdbwd_max_chunk_len: expected an integer ≥ 1');
    expectRefused(ClientConfig, 'flags', 'expected ClientConfig');
  });
});
