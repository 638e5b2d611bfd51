import type { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { CancelledError, ValidationError } from 'tinker-rx';
import { dropped, refusal, type Answer, type FakeRequest } from 'tinker-rx/testing';
import { datum, stage, trainingSends } from './stage.js';

describe('training order', () => {
  it('sends in the order of the calls, one at a time, without waiting for results', () => {
    const { clock, fake, trainer } = stage({ latencyMs: 100, workMs: 10_000 });
    const model = trainer();
    const startMs = clock.now();
    const first = model.forwardBackward([datum()], 'cross_entropy');
    const second = model.optimStep();
    const third = model.saveState('a');
    clock.resolve(third);
    expect(trainingSends(fake)).toEqual([
      `forward_backward#1@${startMs}`,
      `optim_step#2@${startMs + 100}`,
      `save_weights#3@${startMs + 200}`,
    ]);
    expect(clock.now()).toBe(startMs + 200 + 100 + 10_000);
    expect(clock.resolve(first).metrics).toEqual({ 'loss:sum': 3 });
    expect(clock.resolve(second)).toEqual({ metrics: {} });
  });

  it('takes the turn at the call, not when somebody subscribes', () => {
    const { clock, fake, trainer } = stage();
    const model = trainer();
    model.optimStep({ learningRate: 1 });
    model.optimStep({ learningRate: 2 });
    clock.advanceBy(0);
    expect(
      fake.to('optim_step').map(({ json }) => (json['adam_params'] as { learning_rate: number }).learning_rate),
    ).toEqual([1, 2]);
  });

  it('leaves no gap in the numbers when a call is refused before it is sent', () => {
    const { clock, fake, trainer } = stage();
    const model = trainer();
    model.optimStep();
    expect(clock.reject(model.forwardBackward([], 'cross_entropy'))).toBeInstanceOf(ValidationError);
    expect(clock.reject(model.optimStep({ learningRate: NaN }))).toBeInstanceOf(ValidationError);
    clock.resolve(model.optimStep());
    expect(fake.to('optim_step').map(({ seqId }) => seqId)).toEqual([1, 2]);
  });

  it('sends no step for a pass that the client itself refused, and says why', () => {
    const { clock, fake, trainer } = stage();
    const model = trainer();
    const calls = [model.forwardBackward([], 'cross_entropy'), model.optimStep()];
    for (const call of calls) expect(clock.reject(call as Observable<unknown>)).toBeInstanceOf(ValidationError);
    expect(clock.reject(calls[1] as Observable<unknown>)).toMatchObject({
      message: expect.stringMatching(/^there is nothing to apply: .*data is empty/) as string,
    });
    expect(fake.to('optim_step')).toEqual([]);
    // A step for other passes goes out, and so does one that the caller makes again.
    model.forwardBackward([datum()], 'cross_entropy');
    model.forwardBackward([], 'cross_entropy');
    clock.resolve(model.optimStep());
    clock.resolve(model.optimStep());
    expect(fake.to('optim_step').map(({ seqId }) => seqId)).toEqual([2, 3]);
  });

  it('goes on after a turn that failed', () => {
    const { clock, fake, trainer } = stage({ latencyMs: 50, script: { forward_backward: [refusal(400, 'too long')] } });
    const model = trainer();
    const failing = model.forwardBackward([datum()], 'cross_entropy');
    const later = model.optimStep();
    const error = clock.reject(failing) as Error;
    expect(error.name).toBe('BadRequestError');
    expect(error.message).toBe('POST /api/v1/forward_backward: 400 too long');
    clock.resolve(later);
    expect(fake.to('optim_step').map(({ seqId }) => seqId)).toEqual([1]);
  });

  it('holds the turn while a send is being tried again', () => {
    const { clock, fake, trainer } = stage({ script: { forward_backward: [refusal(503), refusal(503)] } });
    const model = trainer();
    model.forwardBackward([datum()], 'cross_entropy');
    clock.resolve(model.optimStep());
    expect(trainingSends(fake)).toEqual([
      'forward_backward#1@0',
      'forward_backward#1@1000',
      'forward_backward#1@3000',
      'optim_step#2@3000',
    ]);
  });

  it('gives up the place of a call that is cancelled while it waits', () => {
    const { clock, fake, trainer } = stage({ latencyMs: 100 });
    const model = trainer();
    model.forwardBackward([datum()], 'cross_entropy');
    const cancelled = model.saveState('never');
    const last = model.optimStep();
    cancelled.cancel();
    expect(clock.reject(cancelled)).toBeInstanceOf(CancelledError);
    clock.resolve(last);
    expect(fake.to('save_weights')).toHaveLength(0);
    expect(fake.to('optim_step').map(({ seqId }) => seqId)).toEqual([2]);
  });

  it.each([
    ['while it is on its way', [], 50],
    ['while it waits to be sent again', [refusal(503)], 500],
  ])('finishes a send that is cancelled %s: the service waits for its number', (_, replies, cancelMs) => {
    const { clock, fake, trainer, eventsOf } = stage({ latencyMs: 100, script: { forward_backward: replies } });
    const model = trainer();
    const startMs = clock.now();
    const cancelled = model.forwardBackward([datum()], 'cross_entropy');
    clock.advanceBy(cancelMs);
    cancelled.cancel();
    expect(clock.reject(cancelled)).toBeInstanceOf(CancelledError);
    expect(clock.now()).toBe(startMs + cancelMs);
    clock.resolve(model.optimStep());
    const sent = fake.to('forward_backward');
    expect(sent.map(({ seqId, state }) => [seqId, state])).toEqual(sent.map(() => [1, 'answered']));
    expect(sent).toHaveLength(replies.length + 1);
    expect(fake.to('optim_step').map(({ seqId, atMs }) => [seqId, atMs])).toEqual([[2, sent.at(-1)!.endedMs]]);
    expect(eventsOf('request-abandoned').map(({ requestId, cancelled: stopped }) => [requestId, stopped])).toEqual([
      ['session-1:train:0:1', false],
    ]);
  });

  it('does not hold up the end of the client with a send that nobody waits for', () => {
    const { clock, fake, trainer, service } = stage({ latencyMs: ({ path }) => (path === 'optim_step' ? 30_000 : 0) });
    trainer().optimStep();
    clock.resolve(service.destroy());
    expect(clock.now()).toBe(0);
    expect(fake.requests.filter(({ state }) => state === 'open')).toEqual([]);
  });

  it('sends what the options were at the call', () => {
    const { clock, fake, trainer } = stage({ latencyMs: 10 });
    const model = trainer();
    const adam = { learningRate: 1 };
    const config = { clip_low_threshold: 0.8 };
    model.optimStep(adam);
    model.forwardBackward([datum()], 'ppo', { lossFnConfig: config });
    const last = model.optimStep(adam);
    adam.learningRate = NaN;
    config.clip_low_threshold = NaN;
    clock.resolve(last);
    const rates = fake
      .to('optim_step')
      .map(({ json }) => (json['adam_params'] as Record<string, number>)['learning_rate']);
    expect(rates).toEqual([1, 1]);
    expect(fake.to('forward_backward')[0]!.pass!.lossFnConfig).toEqual({ clip_low_threshold: 0.8 });
  });

  it.each([1, 2, 3])('arrives in exact order though a fifth of everything fails (seed %i)', (seed) => {
    let state = seed;
    const chance = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
    const accepted: string[] = [];
    const unreliable = (request: FakeRequest): Answer | undefined => {
      const luck = chance();
      if (luck < 0.05) return refusal(503);
      if (luck < 0.1) return refusal(429, 'slow', { 'retry-after': '2' });
      if (luck < 0.15) return dropped();
      accepted.push(`${request.path}#${request.seqId}`);
      // Accepted, but the answer is lost: it is asked again, under the same number.
      return luck < 0.2 ? dropped() : undefined;
    };
    const { clock, trainer } = stage({
      latencyMs: () => Math.round(200 * chance()),
      workMs: 1000,
      script: {
        forward_backward: unreliable,
        optim_step: unreliable,
        retrieve_future: () => (chance() < 0.2 ? refusal(503) : undefined),
      },
    });
    const model = trainer();
    const futures: Observable<unknown>[] = [];
    for (let step = 0; step < 200; step++)
      futures.push(model.forwardBackward([datum()], 'cross_entropy'), model.optimStep());
    for (const future of futures) clock.resolve(future);
    const once = accepted.filter((entry, index) => entry !== accepted[index - 1]);
    expect(once).toEqual(
      Array.from({ length: 400 }, (_, index) => `${index % 2 === 0 ? 'forward_backward' : 'optim_step'}#${index + 1}`),
    );
  });
});
