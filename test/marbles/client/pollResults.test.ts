import { describe, expect, it } from 'vitest';
import { GoneError, RequestFailedError, isUserError } from 'tinker-rx';
import { json, protobuf, refusal } from 'tinker-rx/testing';
import { datum, prompt, stage, times } from './stage.js';

const polls = (on: ReturnType<typeof stage>, type: string) =>
  on.fake.to('retrieve_future').filter(({ headers }) => headers['x-tinker-request-type'] === type);
const announced = (bytes: number) => json({ status: 'complete_metadata', response_payload_size: bytes });

describe('the queue', () => {
  it('is reported with its state and reason, from a 408 and from try_again alike', () => {
    const on = stage({
      script: {
        'retrieve_future OptimStep': [
          json({ queue_state: 'paused_capacity', queue_state_reason: 'all machines are busy' }, { status: 408 }),
          json({ type: 'try_again', queue_state: 'paused_rate_limit' }),
          json({ type: 'try_again', queue_state: 'something new' }),
          json({ type: 'try_again' }),
        ],
      },
    });
    on.clock.resolve(on.trainer().optimStep());
    const work = {
      type: 'queue-state',
      requestId: 'session-1:train:0:1',
      requestType: 'OptimStep',
      target: 'session-1:train:0',
    };
    expect(on.eventsOf('queue-state')).toEqual([
      { ...work, state: 'paused_capacity', reason: 'all machines are busy', waitedMs: 0, atMs: 0 },
      { ...work, state: 'paused_rate_limit', reason: undefined, waitedMs: 100, atMs: 100 },
      { ...work, state: 'unknown', reason: undefined, waitedMs: 200, atMs: 200 },
    ]);
  });

  it('is reported once a minute while it stays the same', () => {
    const on = stage({ workMs: ({ path }) => (path === 'optim_step' ? 300_000 : 0) });
    on.clock.resolve(on.trainer().optimStep());
    expect(times(polls(on, 'OptimStep'))).toEqual([0, 40_000, 80_000, 120_000, 160_000, 200_000, 240_000, 280_000]);
    expect(on.eventsOf('queue-state').map(({ waitedMs }) => waitedMs)).toEqual([40_000, 120_000, 200_000, 280_000]);
  });
});

describe('a large result', () => {
  it('is announced by its size and then asked for in full', () => {
    const on = stage({ script: { 'retrieve_future OptimStep': [announced(10)] } });
    on.clock.resolve(on.trainer().optimStep());
    const [first, second] = polls(on, 'OptimStep');
    expect([first, second].map((poll) => poll!.json['allow_metadata_only'])).toEqual([true, false]);
    expect(second!.headers['x-tinker-request-iteration']).toBe('1');
    expect(second!.headers).not.toHaveProperty('x-tinker-create-promise-roundtrip-time');
  });

  it('takes its bytes from the budget of responses in flight before it is fetched', () => {
    const on = stage({
      config: { inflightResponseBytesSemaphoreSize: 50 },
      latencyMs: ({ path, json: { allow_metadata_only: peek } }) =>
        path === 'retrieve_future' && peek === false ? 1000 : 0,
      script: {
        'retrieve_future OptimStep': ({ json: { allow_metadata_only: peek } }) =>
          peek === true ? announced(60) : undefined,
      },
    });
    const model = on.trainer();
    const steps = [model.optimStep(), model.optimStep(), model.optimStep()];
    for (const step of steps) on.clock.resolve(step);
    const full = polls(on, 'OptimStep').filter(({ json: { allow_metadata_only: peek } }) => peek === false);
    expect(times(full)).toEqual([0, 1000, 2000]);
  });

  it('that is announced twice and not sent is an error', () => {
    const on = stage({ script: { 'retrieve_future OptimStep': [announced(10), announced(10)] } });
    expect(on.clock.reject(on.trainer().optimStep())).toMatchObject({
      code: 'invalid_response',
      requestId: 'session-1:train:0:1',
    });
  });
});

describe('a result', () => {
  it('may come bare, without any wrapper', () => {
    const on = stage({
      script: { 'retrieve_future OptimStep': [json({ metrics: { 'grad_norm:mean': 2 }, future: 'field' })] },
    });
    expect(on.clock.resolve(on.trainer().optimStep())).toEqual({ metrics: { 'grad_norm:mean': 2 } });
  });

  it('may come as JSON where protobuf was asked for', () => {
    const on = stage({
      script: {
        'retrieve_future ForwardBackward': [
          json({ loss_fn_outputs: [{ logprobs: { data: [-1], dtype: 'float32' } }] }),
        ],
      },
    });
    const output = on.clock.resolve(on.trainer().forwardBackward([datum()], 'cross_entropy'));
    expect(output.lossFnOutputs[0]!['logprobs']!.data).toEqual(Float32Array.of(-1));
    expect(polls(on, 'ForwardBackward')[0]!.headers['accept']).toBe('application/x-protobuf');
  });

  it.each([
    ['user', 'USER', true],
    ['server', 'Server', false],
    ['unknown', 'martian', false],
    ['unknown', undefined, false],
  ])('that says the work failed is a RequestFailedError of category %s (%s)', (category, said, user) => {
    const on = stage({
      script: {
        'retrieve_future OptimStep': [
          json({ error: 'loss is NaN', ...(said === undefined ? {} : { category: said }) }),
        ],
      },
    });
    const error = on.clock.reject(on.trainer().optimStep());
    expect(error).toBeInstanceOf(RequestFailedError);
    expect(error).toMatchObject({
      category,
      message: 'loss is NaN',
      requestId: 'session-1:train:0:1',
      retryable: false,
    });
    expect(isUserError(error)).toBe(user);
    expect(polls(on, 'OptimStep')).toHaveLength(1);
  });

  it('that is not what the protocol says is an error that names the place and not the value', () => {
    const on = stage({ script: { 'retrieve_future OptimStep': [json({ metrics: { loss: 'secret' } })] } });
    const error = on.clock.reject(on.trainer().optimStep()) as Error;
    expect(error).toMatchObject({ code: 'invalid_response', requestId: 'session-1:train:0:1' });
    expect(error.message).toContain('metrics.loss');
    expect(error.message).not.toContain('secret');
  });

  it('that is no protobuf message is such an error, too', () => {
    const on = stage({ script: { 'retrieve_future ForwardBackward': [protobuf(Uint8Array.of(255, 255, 255))] } });
    expect(on.clock.reject(on.trainer().forwardBackward([datum()], 'cross_entropy'))).toMatchObject({
      code: 'invalid_response',
    });
  });
});

describe('a promise that is gone (410)', () => {
  it('fails a training operation', () => {
    const on = stage({ script: { 'retrieve_future OptimStep': [refusal(410, 'expired')] } });
    const error = on.clock.reject(on.trainer().optimStep());
    expect(error).toBeInstanceOf(GoneError);
    expect(error).toMatchObject({ requestId: 'session-1:train:0:1' });
    expect(on.fake.to('optim_step')).toHaveLength(1);
  });

  it('has a sample submitted again under a new number and a new key, with the new sequence ids', () => {
    const on = stage({ script: { 'retrieve_future Sample': [refusal(410, 'expired')] } });
    const { sequences } = on.clock.resolve(on.sampler().sample({ prompt: prompt(), numSamples: 2 }));
    const sent = on.fake.to('asample');
    expect(sent.map(({ seqId, atMs }) => [seqId, atMs])).toEqual([
      [0, 0],
      [1, 500],
    ]);
    expect(sent[0]!.headers['x-idempotency-key']).not.toBe(sent[1]!.headers['x-idempotency-key']);
    expect(sequences.map(({ sequenceId }) => sequenceId)).toEqual(['session-1:sample:0:1:0', 'session-1:sample:0:1:1']);
    expect(on.eventsOf('sample-resubmitted').map(({ attempt, delayMs }) => [attempt, delayMs])).toEqual([[1, 500]]);
  });
});
