import { describe, expect, it } from 'vitest';
import { SamplingClient, ValidationError } from 'tinker-rx';
import { json, type FakeTransportOptions } from 'tinker-rx/testing';
import { prompt, stage } from './stage.js';

const BLOCK = 1_000_000_000;
const parse = (handle: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(handle, 'base64').toString('utf8')) as Record<string, unknown>;

function sharing(options: Omit<FakeTransportOptions, 'scheduler'> = {}, random = () => 0.5) {
  const on = stage(options);
  const handle = on.sampler().getSamplerHandle();
  const clone = () => SamplingClient.fromSamplerHandle(handle, { ...on.fake.clientOptions, random });
  const seqIds = () => on.fake.to('asample').map(({ seqId }) => seqId);
  return { on, handle, clone, seqIds };
}

describe('a sampler handle', () => {
  it('is the JSON that the Python SDK reads and writes, in padded base64', () => {
    const { handle } = sharing({ config: { fwdbwdMaxChunkLen: 7 } });
    expect(handle).toMatch(/^[A-Za-z0-9_-]+={0,2}$/);
    expect(handle.length % 4).toBe(0);
    const { holder, ...rest } = parse(handle) as { holder: Record<string, unknown> };
    expect(rest).toEqual({
      session_id: 'session-1',
      sampling_session_id: 'session-1:sample:0',
      record_stability_info: false,
    });
    expect(holder).toMatchObject({ base_url: 'http://fake.test', default_headers_overrides: {} });
    expect(holder['client_config']).toMatchObject({
      pjwt_auth_enabled: false,
      fwdbwd_max_chunk_len: 7,
      sample_max_concurrent_requests: 2000,
    });
    expect(holder['client_dynamic_config']).toEqual({
      refresh_interval_sec: 300,
      sample_cancel_enabled: false,
      sample_cancel_max_batch_size: 64,
    });
  });

  it('carries no credentials, whatever header they are in', () => {
    const on = stage(
      {},
      {
        apiKey: 'tml-top-secret',
        defaultHeaders: {
          'X-Trace': 'kept',
          Authorization: 'Bearer hidden',
          Cookie: 'hidden',
          'CF-Access-Client-Secret': 'hidden',
          'X-Auth-Token': 'hidden',
        },
      },
    );
    const text = JSON.stringify(parse(on.sampler().getSamplerHandle()));
    expect(text).not.toMatch(/hidden|top-secret/);
    expect(text).toContain('"x-trace":"kept"');
  });

  it('makes clients whose numbers start at 10⁹ times a random clone number', () => {
    const { on, clone } = sharing();
    const client = clone();
    on.clock.resolve(client.sample({ prompt: prompt() }));
    on.clock.resolve(client.sample({ prompt: prompt() }));
    expect(on.fake.to('asample').map(({ seqText }) => seqText)).toEqual(['500000001000000000', '500000001000000001']);
  });

  it.each([0, 0.999_999_999_999])(
    'keeps every number exact and above those of the first client (chance %d)',
    (chance) => {
      const { on, clone } = sharing({}, () => chance);
      const client = clone();
      for (let count = 0; count < 3; count++) on.clock.resolve(client.sample({ prompt: prompt() }));
      const written = on.fake.to('asample').map(({ seqText }) => BigInt(seqText));
      expect(written[0]! >= 1_000_000_000n).toBe(true);
      expect(written.map((seqId) => seqId - written[0]!)).toEqual([0n, 1n, 2n]);
    },
  );

  it('makes clients with different numbers each time', () => {
    const chances = [0.1, 0.7];
    const { on, clone, seqIds } = sharing({}, () => chances.shift()!);
    for (const client of [clone(), clone()]) on.clock.resolve(client.sample({ prompt: prompt() }));
    expect(new Set(seqIds()).size).toBe(2);
  });

  it('asks the service for the clone number where it gives them, once, before the first sample', () => {
    const counters = [3, 4];
    const { on, clone, seqIds } = sharing({
      config: { sampleJoinSamplingSession: true },
      script: { join_sampling_session: () => json({ client_counter: counters.shift() }) },
    });
    const [one, other] = [clone(), clone()];
    expect(on.fake.to('join_sampling_session')).toEqual([]);
    for (const client of [one, one, other]) on.clock.resolve(client.sample({ prompt: prompt() }));
    expect(on.fake.to('join_sampling_session').map(({ json: body }) => body)).toEqual([
      { sampling_session_id: 'session-1:sample:0', type: 'join_sampling_session' },
      { sampling_session_id: 'session-1:sample:0', type: 'join_sampling_session' },
    ]);
    expect(seqIds()).toEqual([3 * BLOCK, 3 * BLOCK + 1, 4 * BLOCK]);
  });

  it('joins once for samples that are called together', () => {
    const { on, clone, seqIds } = sharing({
      latencyMs: ({ path }) => (path === 'join_sampling_session' ? 1000 : 0),
      config: { sampleJoinSamplingSession: true },
    });
    const client = clone();
    for (const sample of [1, 2, 3].map(() => client.sample({ prompt: prompt() }))) on.clock.resolve(sample);
    expect(on.fake.to('join_sampling_session')).toHaveLength(1);
    expect(seqIds()).toEqual([BLOCK, BLOCK + 1, BLOCK + 2]);
  });

  it('opens no session and asks for no flags', () => {
    const { on, clone } = sharing();
    const before = on.fake.requests.length;
    on.clock.resolve(clone().sample({ prompt: prompt() }));
    expect(on.fake.requests.slice(before).map(({ path }) => path)).toEqual(['asample', 'retrieve_future']);
  });

  it('polls for its own clone, also for one with a large number', () => {
    const { on, clone } = sharing({ config: { sampleUseRetrieveFutures: true } }, () => 0.999_999_998_5);
    on.clock.resolve(clone().sample({ prompt: prompt() }));
    expect(on.fake.to('retrieve_futures')[0]!.json['target']).toMatchObject({ cloned_sampler_id: 999_999_999 });
  });

  it('polls for the clone that it was given', () => {
    const { on, clone } = sharing({ config: { sampleUseRetrieveFutures: true, sampleJoinSamplingSession: true } });
    on.clock.resolve(clone().sample({ prompt: prompt() }));
    expect(on.fake.to('retrieve_futures')[0]!.json['target']).toMatchObject({ cloned_sampler_id: 1 });
  });

  it('passes on that stability information is recorded', () => {
    const on = stage();
    const sampler = on.sampler({ baseModel: 'any', recordStabilityInfo: true });
    const clone = SamplingClient.fromSamplerHandle(sampler.getSamplerHandle(), on.fake.clientOptions);
    on.clock.resolve(clone.sample({ prompt: prompt() }));
    expect(on.fake.to('asample')[0]!.json['record_stability_info']).toBe(true);
  });

  it.each([
    '',
    'not a handle',
    Buffer.from('{"session_id":"s"}').toString('base64'),
    Buffer.from('[]').toString('base64'),
  ])('that is none is refused (%j)', (text) => {
    expect(() => SamplingClient.fromSamplerHandle(text, { apiKey: 'tml-a' })).toThrow(ValidationError);
  });

  it('is opened with the credentials of the process that opens it', () => {
    const { on, handle } = sharing();
    const clone = SamplingClient.fromSamplerHandle(handle, { ...on.fake.clientOptions, apiKey: 'tml-worker' });
    on.clock.resolve(clone.sample({ prompt: prompt() }));
    expect(on.fake.to('asample').map(({ headers }) => headers['x-api-key'])).toEqual(['tml-worker']);
  });
});
