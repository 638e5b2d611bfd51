import { describe, expect, it } from 'vitest';
import { dropped, json, refusal, type FakeTransportOptions, type Reply } from 'tinker-rx/testing';
import { prompt, stage, times } from './stage.js';

const polled = (options: Omit<FakeTransportOptions, 'scheduler'> = {}) =>
  stage({ ...options, config: { ...options.config, sampleUseRetrieveFutures: true } });
const reports = (on: ReturnType<typeof stage>) =>
  on.fake
    .to('retrieve_futures')
    .map(({ atMs, json: { prev_cursor: cursor, retrieved_request_ids: ids } }) => [atMs, cursor, ids]);
const id = (seqId: number): string => `session-1:sample:0:${seqId}`;
const finished = (seqId: number, size?: number) => ({
  state: 'finished',
  request_id: id(seqId),
  ...(size === undefined ? {} : { response_payload_uncompressed_size: size }),
});

describe('the poll for a whole sampling session', () => {
  it.each([0, 50])(
    'waits for all samples at once, reports what was fetched and is idle otherwise (latency %i ms)',
    (latencyMs) => {
      const on = polled({
        workMs: ({ path }) => (path === 'asample' ? 5000 : 0),
        latencyMs: ({ path }) => (path === 'retrieve_future' ? latencyMs : 0),
      });
      const sampler = on.sampler();
      on.clock.advanceTo(1000);
      expect(on.fake.to('retrieve_futures')).toEqual([]);
      for (const sample of [1, 2, 3].map(() => sampler.sample({ prompt: prompt() }))) on.clock.resolve(sample);
      on.clock.advanceTo(100_000);
      on.clock.resolve(sampler.sample({ prompt: prompt() }));
      on.clock.advanceTo(200_000);
      const polls = reports(on);
      expect(polls[0]).toEqual([1000, 0, []]);
      expect(polls[1]).toEqual([6000 + latencyMs, 3, expect.arrayContaining([])]);
      expect(polls.slice(1).flatMap(([, , ids]) => ids as string[])).toEqual([id(0), id(1), id(2), id(3)]);
      expect(polls.filter(([atMs]) => (atMs as number) > 40_000 && (atMs as number) < 100_000)).toEqual([]);
      expect(polls.filter(([atMs]) => atMs === 100_000)).toEqual([[100_000, 3, []]]);
      expect(on.fake.to('retrieve_future')).toHaveLength(4);
      expect(on.fake.to('retrieve_futures').every(({ lane }) => lane === 'sessionPolls')).toBe(true);
    },
  );

  it('names the session and the clone', () => {
    const on = polled();
    on.clock.resolve(on.sampler().sample({ prompt: prompt() }));
    expect(on.fake.to('retrieve_futures')[0]!.json['target']).toEqual({
      type: 'sampling_session',
      sampling_session_id: 'session-1:sample:0',
      cloned_sampler_id: 0,
    });
  });

  it('takes the size of a finished result from the response budget and fetches it in one go', () => {
    const on = polled({
      config: { inflightResponseBytesSemaphoreSize: 50 },
      latencyMs: ({ path }) => (path === 'retrieve_future' ? 1000 : 0),
      script: { retrieve_futures: [json({ completions: [finished(0, 60), finished(1, 60), finished(2)], cursor: 3 })] },
    });
    const sampler = on.sampler();
    for (const sample of [1, 2, 3].map(() => sampler.sample({ prompt: prompt() }))) on.clock.resolve(sample);
    const fetches = on.fake
      .to('retrieve_future')
      .map(({ atMs, requestId, json: body }) => [atMs, requestId, body['allow_metadata_only']]);
    expect(fetches).toEqual([
      [0, id(0), false],
      [0, id(2), true],
      [1000, id(1), false],
    ]);
  });

  it('asks the oldest waiting sample why it waits, once nothing has finished for half a minute', () => {
    const on = polled({
      workMs: ({ path }) => (path === 'asample' ? 100_000 : 0),
      script: {
        'retrieve_future Sample': [1, 2, 3].map(() =>
          json({ type: 'try_again', queue_state: 'paused_capacity', queue_state_reason: 'busy' }, { status: 408 }),
        ),
      },
    });
    const sampler = on.sampler();
    const sample = sampler.sample({ prompt: prompt() });
    sampler.sample({ prompt: prompt() });
    on.clock.resolve(sample);
    expect(on.clock.now()).toBe(100_000);
    expect(
      on.eventsOf('queue-state').map(({ requestId, state, reason, waitedMs }) => [requestId, state, reason, waitedMs]),
    ).toEqual([
      [id(0), 'paused_capacity', 'busy', 30_000],
      [id(0), 'paused_capacity', 'busy', 90_000],
    ]);
    const asked = on.fake.to('retrieve_future').filter(({ requestId }) => requestId === id(0));
    expect(times(asked).slice(0, 3)).toEqual([30_000, 60_000, 90_000]);
  });

  it('is tried again after a second when it fails in passing', () => {
    const on = polled({
      script: { retrieve_futures: [refusal(503), dropped(), refusal(429), refusal(408), refusal(400)] },
    });
    on.clock.resolve(on.sampler().sample({ prompt: prompt() }));
    expect(times(on.fake.to('retrieve_futures')).slice(0, 6)).toEqual([0, 1000, 2000, 3000, 4000, 5000]);
  });

  it.each([
    ['what trying again cannot help', [refusal(403, 'not yours')], 'permission_denied'],
    ['the fourth 400', Array<Reply>(4).fill(refusal(400, 'no')), 'bad_request'],
  ])('fails every waiting sample on %s, and starts afresh with the next', (_, replies, code) => {
    const on = polled({
      script: { retrieve_futures: replies },
      workMs: ({ path }) => (path === 'asample' ? 10_000 : 0),
      latencyMs: ({ path }) => (path === 'retrieve_futures' ? 10 : 0),
    });
    const sampler = on.sampler();
    for (const sample of [1, 2, 3].map(() => sampler.sample({ prompt: prompt() })))
      expect(on.clock.reject(sample)).toMatchObject({ code });
    on.clock.resolve(sampler.sample({ prompt: prompt() }));
  });

  it('lets the server forget what nobody waits for any more', () => {
    const on = polled({ workMs: ({ path }) => (path === 'asample' ? 5000 : 0) });
    const sampler = on.sampler();
    const cancelled = sampler.sample({ prompt: prompt() });
    on.clock.advanceTo(1000);
    cancelled.cancel();
    on.clock.resolve(sampler.sample({ prompt: prompt() }));
    on.clock.advanceBy(60_000);
    expect(on.fake.to('retrieve_future').map(({ requestId }) => requestId)).toEqual([id(1)]);
    expect(reports(on).flatMap(([, , ids]) => ids as string[])).toEqual([id(0), id(1)]);
  });

  it('has a sample whose promise is gone submitted again', () => {
    const on = polled({ script: { 'retrieve_future Sample': [refusal(410)] } });
    const { sequences } = on.clock.resolve(on.sampler().sample({ prompt: prompt() }));
    expect(sequences[0]!.sequenceId).toBe('session-1:sample:0:1:0');
  });

  it('asks at a bounded rate a server that does not hold the poll', () => {
    const on = polled({
      workMs: ({ path }) => (path === 'asample' ? 10_000 : 0),
      latencyMs: ({ path }) => (path === 'retrieve_futures' ? 1 : 0),
      script: { retrieve_futures: () => (on.clock.now() < 9000 ? json({ completions: [], cursor: 0 }) : undefined) },
    });
    on.clock.resolve(on.sampler().sample({ prompt: prompt() }));
    expect(on.fake.to('retrieve_futures').length).toBeLessThan(120);
  });

  it('leaves nothing open when the client is closed', () => {
    const on = polled({ workMs: ({ path }) => (path === 'asample' ? 5000 : 0) });
    on.clock.resolve(on.sampler().sample({ prompt: prompt() }));
    on.clock.resolve(on.service.close());
    on.clock.advanceBy(0);
    expect(on.fake.requests.filter(({ state }) => state === 'open').map(({ path }) => path)).toEqual([]);
  });
});
