import { describe, expect, it } from 'vitest';
import { MissingRequestError, type TinkerError } from 'tinker-rx';
import { dropped, refusal, type Answer } from 'tinker-rx/testing';
import { datum, stage, trainingSends } from './stage.js';

const seqIds = (fake: ReturnType<typeof stage>['fake']): (number | undefined)[] =>
  fake.requests.filter(({ lane, path }) => lane === 'training' && path !== 'create_model').map(({ seqId }) => seqId);
/** Leaves the answer to the fake service. */
const well = (): undefined => undefined;
const many = (answer: Answer, times = 40): Answer[] => new Array<Answer>(times).fill(answer);

describe('a training call that is refused', () => {
  it.each([400, 403, 413, 422])('gives its number to the next one and does not stall the model (%i)', (status) => {
    const { clock, fake, trainer, service } = stage({
      latencyMs: 10,
      script: { forward_backward: [well, refusal(status, 'no')] },
    });
    const model = trainer();
    const first = model.forwardBackward([datum()], 'cross_entropy');
    const refused = model.forwardBackward([datum()], 'cross_entropy');
    const step = model.optimStep();
    const saved = model.saveState('a');
    clock.resolve(first);
    expect(clock.reject(refused)).toMatchObject({ status, retryable: false });
    clock.resolve(step);
    clock.resolve(saved);
    expect(seqIds(fake)).toEqual([1, 2, 2, 3]);
    const beforeMs = clock.now();
    clock.resolve(service.close());
    expect(clock.now() - beforeMs).toBeLessThan(1000);
  });

  it('gives back the number of an operation, too, and of a billing pause or a limit that lasted too long', () => {
    const { clock, fake, trainer } = stage({
      config: { billingExceptionMaxPauseDurationSec: 10 },
      script: {
        optim_step: [refusal(400, 'no')],
        save_weights: many(refusal(429)),
        save_weights_for_sampler: many(refusal(402)),
      },
    });
    const model = trainer();
    expect(clock.reject(model.optimStep())).toMatchObject({ status: 400 });
    expect(clock.reject(model.saveState('a'))).toMatchObject({ status: 429 });
    expect(clock.reject(model.saveWeightsForSampler('b'))).toMatchObject({ status: 402 });
    clock.resolve(model.forwardBackward([datum()], 'cross_entropy'));
    expect(new Set(seqIds(fake))).toEqual(new Set([1]));
  });

  it('gives it back after a try whose answer was lost, when the content itself is refused', () => {
    const { clock, fake, trainer } = stage({ script: { optim_step: [dropped(), refusal(400, 'bad')] } });
    const model = trainer();
    expect(clock.reject(model.optimStep())).toMatchObject({ status: 400 });
    clock.resolve(model.saveState('a'));
    expect(seqIds(fake)).toEqual([1, 1, 1]);
  });

  it('keeps it after a try whose answer was lost, when the refusal says nothing of the content', () => {
    const { clock, fake, trainer } = stage({ script: { optim_step: [dropped(), refusal(403, 'revoked')] } });
    const model = trainer();
    expect(clock.reject(model.optimStep())).toMatchObject({ status: 403 });
    expect(clock.reject(model.saveState('a'))).toBeInstanceOf(MissingRequestError);
    expect(seqIds(fake)).toEqual([1, 1]);
  });
});

describe('a training call that failed, though the service may have it', () => {
  it.each([
    ['no answer', dropped()],
    ['503', refusal(503)],
  ])('lets later calls fail at once, with the number that is missing and what to do (%s)', (_, answer) => {
    const { clock, fake, trainer, service } = stage({
      script: { forward_backward: [well, ...many(answer, 15)] },
    });
    const model = trainer();
    clock.resolve(model.forwardBackward([datum()], 'cross_entropy'));
    const lost = model.forwardBackward([datum(4)], 'cross_entropy');
    const step = model.optimStep();
    expect(clock.reject(lost)).toMatchObject({ retryable: true });
    const failedMs = clock.now();
    expect(failedMs).toBe(300_000);
    const error = clock.reject(step) as TinkerError;
    expect(error).toBeInstanceOf(MissingRequestError);
    expect(error).toMatchObject({ code: 'missing_request', retryable: false });
    expect(error.message).toMatch(
      /request 2 \(forward_backward\) of model session-1:train:0.*createTrainingClientFromStateWithOptimizer/,
    );
    expect(clock.now()).toBe(failedMs);
    expect(fake.to('optim_step')).toEqual([]);
    clock.resolve(service.close());
    expect(clock.now()).toBe(failedMs);
  });

  it('goes out under its own number and key when it is made again, not under the next', () => {
    const { clock, fake, trainer } = stage({ script: { forward_backward: many(dropped(), 15) } });
    const model = trainer();
    expect(clock.reject(model.forwardBackward([datum()], 'cross_entropy'))).toMatchObject({ retryable: true });
    expect(clock.reject(model.forwardBackward([datum(5)], 'cross_entropy'))).toBeInstanceOf(MissingRequestError);
    clock.resolve(model.forwardBackward([datum()], 'cross_entropy'));
    clock.resolve(model.optimStep());
    expect(new Set(fake.to('forward_backward').map(({ seqId }) => seqId))).toEqual(new Set([1]));
    expect(new Set(fake.to('forward_backward').map(({ headers }) => headers['x-idempotency-key'])).size).toBe(1);
    expect(fake.to('optim_step').map(({ seqId }) => seqId)).toEqual([2]);
  });

  it('is told from another call by its content, also where part of it is made anew', () => {
    const { clock, fake, trainer } = stage({ script: { save_weights_for_sampler: many(dropped(), 15) } });
    const model = trainer();
    expect(clock.reject(model.saveWeightsAndGetSamplingClient())).toMatchObject({ retryable: true });
    expect(clock.reject(model.saveWeightsForSampler('a'))).toBeInstanceOf(MissingRequestError);
    clock.resolve(model.saveWeightsAndGetSamplingClient());
    const sent = fake.to('save_weights_for_sampler').map(({ json }) => JSON.stringify(json));
    expect(new Set(sent).size).toBe(1);
  });

  it('is not taken for an equal call that was made before it failed', () => {
    const { clock, fake, trainer } = stage({ latencyMs: 1, script: { optim_step: many(dropped(), 15) } });
    const model = trainer();
    const calls = [model.optimStep(), model.forwardBackward([datum()], 'cross_entropy'), model.optimStep()];
    expect(clock.reject(calls[0]!)).toMatchObject({ code: 'connection' });
    for (const later of calls.slice(1)) expect(clock.reject(later)).toBeInstanceOf(MissingRequestError);
    expect(fake.to('optim_step')).toHaveLength(15);
    clock.resolve(model.optimStep());
  });

  it('does not stop a server that works by arrival', () => {
    const { clock, fake, trainer } = stage({ speaks: 'json', script: { optim_step: many(dropped(), 15) } });
    const model = trainer();
    clock.resolve(model.forwardBackward([datum()], 'cross_entropy'));
    expect(clock.reject(model.optimStep())).toMatchObject({ retryable: true });
    clock.resolve(model.forwardBackward([datum()], 'cross_entropy'));
    expect(fake.to('forward_backward').at(-1)!.seqId).toBe(3);
  });
});

describe('a pass in chunks', () => {
  const chunked = { latencyMs: 10, config: { fwdbwdMaxChunkLen: 1 } };

  it('with one chunk refused and another accepted: later calls fail at once, close ends', () => {
    const { clock, fake, trainer, service } = stage({
      ...chunked,
      script: { forward_backward: ({ seqId }) => (seqId === 2 ? refusal(413, 'too large') : undefined) },
    });
    const model = trainer();
    const pass = model.forwardBackward([1, 2, 3].map(datum), 'cross_entropy');
    const step = model.optimStep();
    const save = model.saveState('a');
    expect(clock.reject(pass)).toMatchObject({ status: 413 });
    for (const later of [step, save]) {
      const error = clock.reject(later) as TinkerError;
      expect(error).toBeInstanceOf(MissingRequestError);
      expect(error.message).toContain('request 1 (forward_backward)');
    }
    expect(trainingSends(fake).map((sent) => sent.split('@')[0])).toEqual(['forward_backward#2', 'forward_backward#3']);
    const beforeMs = clock.now();
    clock.resolve(service.close());
    expect(clock.now() - beforeMs).toBeLessThan(1000);
  });

  it('with every chunk refused gives all their numbers back', () => {
    const { clock, fake, trainer } = stage({
      ...chunked,
      script: { forward_backward: [refusal(403), refusal(403)] },
    });
    const model = trainer();
    expect(clock.reject(model.forwardBackward([1, 2, 3].map(datum), 'cross_entropy'))).toMatchObject({ status: 403 });
    clock.resolve(model.forwardBackward([1, 2, 3].map(datum), 'cross_entropy'));
    clock.resolve(model.optimStep());
    expect(seqIds(fake)).toEqual([2, 3, 2, 3, 1, 4]);
  });

  it('with a part accepted, in order, lets only the same pass follow: its first chunk already counts', () => {
    const { clock, fake, trainer } = stage({
      latencyMs: 10,
      config: { fwdbwdMaxChunkLen: 1, parallelFwdbwdChunks: false },
      script: { forward_backward: [well, refusal(413)] },
    });
    const model = trainer();
    const data = [1, 2].map(datum);
    expect(clock.reject(model.forwardBackward(data, 'cross_entropy'))).toMatchObject({ status: 413 });
    expect(clock.reject(model.optimStep())).toBeInstanceOf(MissingRequestError);
    clock.resolve(model.forwardBackward(data, 'cross_entropy'));
    clock.resolve(model.optimStep());
    expect(seqIds(fake)).toEqual([1, 2, 1, 2, 3]);
  });
});

describe('the fake service', () => {
  it('keeps order as the service does: work whose number is ahead waits, and says for what', () => {
    const { clock, fake, trainer, eventsOf } = stage();
    const model = trainer();
    const send = (seqId: number) =>
      fake.clientOptions.transport({
        method: 'POST',
        path: '/api/v1/optim_step',
        lane: 'training',
        headers: {},
        timeoutMs: 1000,
        body: JSON.stringify({ model_id: model.modelId, seq_id: seqId }),
      });
    clock.resolve(send(2));
    const first = model.optimStep();
    clock.resolve(first);
    clock.resolve(send(4));
    const waiting = fake.clientOptions.transport({
      method: 'POST',
      path: '/api/v1/retrieve_future',
      lane: 'polls',
      headers: {},
      timeoutMs: 60_000,
      body: JSON.stringify({ request_id: `${model.modelId}:4` }),
    });
    const { status, body } = clock.resolve(waiting);
    expect([status, JSON.parse(new TextDecoder().decode(body))]).toEqual([
      408,
      { type: 'try_again', queue_state: 'active', queue_state_reason: 'waiting for seq_id 3' },
    ]);
    expect(clock.resolve(send(2)).status).toBe(200);
    expect(eventsOf('request-failed')).toEqual([]);
  });
});
