import { lastValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CancelledError, isLeft, isRight, type TinkerError } from 'tinker-rx';
import { refusal } from 'tinker-rx/testing';
import { datum, prompt, stage } from './stage.js';

const rejections: unknown[] = [];
const note = (reason: unknown): void => void rejections.push(reason);
beforeEach(() => {
  rejections.length = 0;
  process.on('unhandledRejection', note);
});
afterEach(() => process.off('unhandledRejection', note));
const settleDown = () => new Promise((resolve) => setTimeout(resolve, 20));

describe('a future', () => {
  it('keeps its result: reading it again asks nobody', async () => {
    const on = stage();
    const step = on.trainer().optimStep();
    const sent = on.fake.requests.length;
    const results = [await step, await step, await lastValueFrom(step), on.clock.resolve(step)];
    expect(results).toEqual(results.map(() => ({ metrics: {} })));
    expect(on.fake.requests).toHaveLength(sent);
  });

  it('keeps its failure: every reader gets the same error', async () => {
    const on = stage({ script: { optim_step: refusal(403) } });
    const step = on.trainer().optimStep();
    const error = on.clock.reject(step);
    await expect(step).rejects.toBe(error);
    await expect(lastValueFrom(step)).rejects.toBe(error);
    expect(on.fake.to('optim_step')).toHaveLength(1);
  });

  it('knows the id of its request once the service has accepted it', () => {
    const on = stage({ latencyMs: 100, workMs: 1000 });
    const model = on.trainer();
    const step = model.optimStep();
    expect(step.requestId).toBeUndefined();
    on.clock.advanceBy(100);
    expect(step.requestId).toBe('session-1:train:0:1');
  });

  it('gives its outcome as a value to those who prefer values', () => {
    const on = stage({ script: { optim_step: [(): undefined => undefined, refusal(403)] } });
    const model = on.trainer();
    const good = on.clock.resolve(model.optimStep().either());
    const bad = on.clock.resolve(model.optimStep().either());
    expect(isRight(good) && good.right).toEqual({ metrics: {} });
    expect(isLeft(bad) && bad.left.code).toBe('permission_denied');
  });

  it('that fails and that nobody reads is an event and no unhandled rejection', async () => {
    const on = stage({ script: { optim_step: refusal(403, 'no'), save_weights: refusal(403, 'no') } });
    const model = on.trainer();
    model.optimStep();
    model.forwardBackward([], 'cross_entropy');
    void model.saveState('a').either();
    await settleDown();
    expect(rejections).toEqual([]);
    expect(on.eventsOf('request-failed').map(({ error }) => error.code)).toEqual([
      'permission_denied',
      'invalid_input',
      'permission_denied',
    ]);
  });

  it('that fails and is awaited in vain is an unhandled rejection like any other', async () => {
    const on = stage({ script: { optim_step: refusal(403) } });
    void on
      .trainer()
      .optimStep()
      .then(() => undefined);
    await expect.poll(() => rejections).toHaveLength(1);
  });

  it('can be caught like a promise', async () => {
    const on = stage({ script: { optim_step: refusal(403) } });
    const step = on.trainer().optimStep();
    expect(await step.catch((error: unknown) => (error as TinkerError).code)).toBe('permission_denied');
    expect(
      await stage()
        .trainer()
        .optimStep()
        .catch(() => 'never'),
    ).toEqual({ metrics: {} });
    await settleDown();
    expect(rejections).toEqual([]);
  });

  it('has a finally like a promise: called once, whatever the outcome, which passes through', async () => {
    const on = stage({ script: { optim_step: [(): undefined => undefined, refusal(403)] } });
    const model = on.trainer();
    let calls = 0;
    const count = (): void => void calls++;
    expect(await model.optimStep().finally(count)).toEqual({ metrics: {} });
    await expect(model.optimStep().finally(count)).rejects.toMatchObject({ code: 'permission_denied' });
    expect(calls).toBe(2);
  });

  it('works on when a subscriber leaves', () => {
    const on = stage({ workMs: 1000 });
    const step = on.trainer().optimStep();
    step.subscribe().unsubscribe();
    expect(on.clock.resolve(step)).toEqual({ metrics: {} });
  });

  it('says what became of its work', () => {
    const on = stage({ latencyMs: 10, workMs: 1000 });
    const model = on.trainer();
    on.clock.resolve(model.forwardBackward([datum(4)], 'cross_entropy'));
    const work = { requestType: 'ForwardBackward', requestId: 'session-1:train:0:1', target: 'session-1:train:0' };
    const ofWork = on.events.filter((event) => 'requestType' in event && event.requestType === 'ForwardBackward');
    expect(ofWork.map(({ type }) => type)).toEqual(['request-sent', 'request-finished', 'tokens-used']);
    expect(ofWork[0]).toMatchObject({ ...work, seqId: 1, bytes: 64 });
    expect(ofWork[1]).toMatchObject({ ...work, elapsedMs: expect.any(Number) as number });
    expect(ofWork[2]).toMatchObject({ prompt: 0, cached: 0, sampled: 0, trained: 4 });
  });

  it('of a step and of a checkpoint have events of their own', () => {
    const on = stage({ optimStep: () => ({ 'grad_norm:mean': 2 }) });
    const model = on.trainer();
    on.clock.resolve(model.optimStep());
    on.clock.resolve(model.saveState('a'));
    expect(on.eventsOf('step-end').map(({ seqId, metrics }) => [seqId, metrics])).toEqual([
      [1, { 'grad_norm:mean': 2 }],
    ]);
    expect(on.eventsOf('checkpoint-saved').map(({ seqId, path }) => [seqId, path])).toEqual([
      [2, 'tinker://session-1:train:0/weights/a'],
    ]);
  });
});

describe('cancelling a future', () => {
  it('fails it with CancelledError, also for those who read it later', async () => {
    const on = stage({ workMs: 1000 });
    const sample = on.sampler().sample({ prompt: prompt() });
    sample.cancel();
    await expect(sample).rejects.toBeInstanceOf(CancelledError);
    expect(on.clock.reject(sample)).toMatchObject({ code: 'cancelled', requestId: 'session-1:sample:0:0' });
  });

  it('stops waiting and polling', () => {
    const on = stage({ workMs: ({ path }) => (path === 'optim_step' ? 100_000 : 0) });
    const step = on.trainer().optimStep();
    on.clock.advanceTo(50_000);
    step.cancel();
    on.clock.advanceTo(200_000);
    const polls = on.fake
      .to('retrieve_future')
      .filter(({ headers }) => headers['x-tinker-request-type'] === 'OptimStep');
    expect(polls.map(({ atMs, state }) => [atMs, state])).toEqual([
      [0, 'answered'],
      [40_000, 'aborted'],
    ]);
    expect(on.eventsOf('request-abandoned')).toEqual([
      {
        type: 'request-abandoned',
        requestType: 'OptimStep',
        requestId: 'session-1:train:0:1',
        target: 'session-1:train:0',
        cancelled: false,
        atMs: 50_000,
      },
    ]);
  });

  it('after its result, or twice, does nothing', () => {
    const on = stage();
    const step = on.trainer().optimStep();
    step.cancel();
    step.cancel();
    expect(on.clock.resolve(step)).toEqual({ metrics: {} });
    expect(on.eventsOf('request-abandoned')).toEqual([]);
  });

  it('is told to the server for a sample, and the sample is not submitted again', () => {
    const on = stage({
      dynamicConfig: { sampleCancelEnabled: true },
      workMs: ({ path }) => (path === 'asample' ? 1000 : 0),
    });
    const sample = on.sampler().sample({ prompt: prompt() });
    sample.cancel();
    on.clock.advanceBy(60_000);
    expect(on.fake.to('cancel_future').map(({ json: body }) => body)).toEqual([{ request_id: 'session-1:sample:0:0' }]);
    expect(on.fake.to('asample')).toHaveLength(1);
  });
});
