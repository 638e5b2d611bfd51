import { NEVER, type Observable } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { CancelledError, ClosedError } from 'tinker-rx';
import { json, refusal } from 'tinker-rx/testing';
import { datum, prompt, stage } from './stage.js';

const paths = (on: ReturnType<typeof stage>): string[] => on.fake.requests.map(({ path }) => path);
const finishes = (on: ReturnType<typeof stage>) => on.fake.to('sessions/session-1/finish');
afterEach(() => vi.unstubAllEnvs());

describe('the session', () => {
  it('is not opened by a client that only asks and lists', () => {
    const on = stage({ script: { checkpoints: json({ checkpoints: [] }) } });
    expect(paths(on)).toEqual([]);
    on.clock.resolve(on.service.getServerCapabilities());
    on.clock.resolve(on.service.rest.listUserCheckpoints());
    expect(paths(on)).toEqual(['client/config', 'get_server_capabilities', 'checkpoints']);
    expect(on.service.sessionId).toBeUndefined();
    on.clock.resolve(on.service.close());
    expect(paths(on)).toHaveLength(3);
  });

  it('is opened once, by the first that needs it, for all', () => {
    const on = stage({ latencyMs: 100 });
    const calls: Observable<unknown>[] = [
      on.service.createSamplingClient({ baseModel: 'any' }),
      on.service.createLoraTrainingClient({ baseModel: 'any' }),
      on.service.createSamplingClient({ baseModel: 'any' }),
    ];
    for (const call of calls) on.clock.resolve(call);
    expect(paths(on).slice(0, 3)).toEqual(['client/config', 'client/dynamic_config', 'create_session']);
    expect(on.fake.to('create_session')).toHaveLength(1);
    expect(on.service.sessionId).toBe('session-1');
    expect(on.service.consoleUrl).toContain('/sessions/session-1');
  });

  it('is tried again by the next call when it could not be opened', () => {
    const on = stage({ script: { create_session: [refusal(403, 'not yet')] } });
    expect(on.clock.reject(on.service.createSamplingClient({ baseModel: 'any' }))).toMatchObject({
      code: 'permission_denied',
    });
    on.sampler();
    expect(on.fake.to('create_session')).toHaveLength(2);
  });

  it('carries what the options and the environment say', () => {
    vi.stubEnv('TINKER_TAGS', 'a,b');
    vi.stubEnv('TINKER_PROJECT_ID', 'project-7');
    const on = stage({}, { displayName: 'mine', userMetadata: { run: '1' }, sdkVersion: '0.99.0' });
    on.sampler();
    expect(on.fake.to('create_session')[0]!.json).toEqual({
      tags: ['a', 'b'],
      user_metadata: { run: '1' },
      sdk_version: '0.99.0',
      project_id: 'project-7',
      display_name: 'mine',
      type: 'create_session',
    });
  });

  it('shows what the service wants to be shown', () => {
    const messages = { info_message: 'hello', warning_message: 'old', error_message: 'broken' };
    const on = stage({ script: { create_session: json({ session_id: 'session-1', ...messages }) } });
    on.sampler();
    expect(on.eventsOf('session-message').map(({ level, message }) => [level, message])).toEqual([
      ['info', 'hello'],
      ['warning', 'old'],
      ['error', 'broken'],
    ]);
  });
});

describe('close', () => {
  it('waits for pending work, says how the session ended, and then refuses', () => {
    const on = stage({ workMs: ({ path }) => (path === 'optim_step' ? 10_000 : 0) });
    const model = on.trainer();
    const step = model.optimStep();
    const closing = on.service.close();
    expect(on.clock.reject(model.optimStep())).toBeInstanceOf(ClosedError);
    expect(on.clock.reject(on.service.getServerCapabilities())).toBeInstanceOf(ClosedError);
    on.clock.resolve(closing);
    expect(on.clock.now()).toBe(10_000);
    expect(on.clock.resolve(step)).toEqual({ metrics: {} });
    expect(finishes(on).map(({ json: body }) => body)).toEqual([{ reason: { type: 'success' } }]);
    expect(on.fake.to('optim_step')).toHaveLength(1);
    expect(on.eventsOf('session-finished').map(({ status }) => status)).toEqual(['success']);
  });

  it('waits for a call that has several things to do', () => {
    const on = stage({ latencyMs: 100 });
    const resumed = on.service.createTrainingClientFromState('tinker://run/weights/a');
    const custom = on.trainer().forwardBackwardCustom([datum()], (_, logprobs) => ({
      loss: 1,
      gradients: logprobs.map((row) => new Float32Array(row.length)),
    }));
    on.clock.resolve(on.service.close());
    expect(on.clock.resolve(resumed).modelId).toBe('session-1:train:0');
    expect(on.clock.resolve(custom).metrics['loss:sum']).toBe(1);
    expect(on.eventsOf('request-failed')).toEqual([]);
  });

  it('says what it is told to say', () => {
    const on = stage();
    on.sampler();
    on.clock.resolve(on.service.close({ status: 'errored', detail: 'out of disk' }));
    expect(finishes(on)[0]!.json).toEqual({ reason: { type: 'errored' }, detail: 'out of disk' });
  });

  it('is the same the second time', () => {
    const on = stage();
    on.sampler();
    expect(on.service.close()).toBe(on.service.close({ status: 'errored' }));
    on.clock.advanceBy(1000);
    expect(finishes(on)).toHaveLength(1);
  });

  it('completes the events', () => {
    const on = stage();
    let completed = false;
    on.service.events$.subscribe({ complete: () => (completed = true) });
    on.sampler();
    on.clock.resolve(on.service.close());
    expect(completed).toBe(true);
  });

  it.each([
    ['does not know the endpoint', refusal(404)],
    ['has ended the session itself', refusal(410)],
    ['refuses', refusal(403)],
  ])('does not fail when the server %s', (_, reply) => {
    const on = stage({ script: { 'sessions/session-1/finish': reply } });
    on.sampler();
    on.clock.resolve(on.service.close());
    expect(on.clock.now()).toBe(0);
  });

  it('gives a server that has gone away fifteen seconds', () => {
    const on = stage({ script: { 'sessions/session-1/finish': NEVER } });
    on.sampler();
    on.clock.resolve(on.service.close());
    expect(on.clock.now()).toBe(15_000);
    expect(on.fake.requests.filter(({ state }) => state === 'open')).toEqual([]);
    expect(on.eventsOf('session-unfinished').map(({ reason }) => reason)).toEqual(['no answer within 15 s']);
    expect(on.eventsOf('session-finished')).toEqual([]);
  });

  it('leaves nothing open and nothing to come', () => {
    const on = stage();
    const sampler = on.sampler();
    on.clock.resolve(sampler.sample({ prompt: prompt() }));
    on.clock.resolve(on.service.close());
    const sent = on.fake.requests.length;
    on.clock.advanceBy(24 * 3_600_000);
    expect(on.fake.requests).toHaveLength(sent);
    expect(on.fake.requests.filter(({ state }) => state === 'open')).toEqual([]);
  });

  it('can be awaited as a disposal', async () => {
    const on = stage();
    on.sampler();
    await on.service[Symbol.asyncDispose]();
    expect(finishes(on)).toHaveLength(1);
  });
});

describe('destroy', () => {
  it('cancels pending work instead of waiting, and says that the session was interrupted', () => {
    const on = stage({ workMs: ({ path }) => (path === 'optim_step' ? 10_000 : 0) });
    const step = on.trainer().optimStep();
    on.clock.resolve(on.service.destroy());
    expect(on.clock.now()).toBe(0);
    expect(on.clock.reject(step)).toBeInstanceOf(CancelledError);
    expect(finishes(on)[0]!.json).toEqual({ reason: { type: 'interrupted' } });
    expect(on.fake.requests.filter(({ state }) => state === 'open')).toEqual([]);
  });
});
