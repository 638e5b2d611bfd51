import { defer, throwError } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { RequestFailedError } from 'tinker-rx';
import { retryBackoff } from 'tinker-rx/operators';
import { VirtualClock, json, refusal, type Reply } from 'tinker-rx/testing';
import { statusError } from '../../../src/client/connection/failure.js';
import { datum, stage } from './stage.js';

/** What would end the process: errors that no subscriber got. */
const uncaught: unknown[] = [];
const note = (error: unknown): void => void uncaught.push(error);
process.on('uncaughtException', note);
afterEach(async () => {
  // RxJS reports what it cannot deliver in a task of its own.
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(uncaught.splice(0)).toEqual([]);
});

const poison: Reply = json({ detail: [{ loc: [{ toString: 1 }], msg: 'x' }] }, { status: 422 });

describe('a refusal whose body cannot be printed', () => {
  it('fails its call and nothing else', () => {
    const on = stage({ script: { get_server_capabilities: poison } });
    expect(on.clock.reject(on.service.getServerCapabilities())).toMatchObject({ code: 'unprocessable', status: 422 });
  });

  it('does no harm as the answer to a heartbeat or to telemetry', () => {
    const on = stage({ script: { session_heartbeat: poison, telemetry: poison } }, { telemetry: true });
    on.sampler();
    on.clock.advanceTo(60_000);
    expect(on.fake.to('session_heartbeat').length).toBeGreaterThan(4);
    expect(on.fake.to('telemetry').length).toBeGreaterThan(0);
    on.clock.resolve(on.service.close());
  });
});

describe('a failed result', () => {
  it.each<[string, object, string]>([
    ['an object with a message', { error: { message: 'boom' } }, 'boom'],
    ['an object without one', { error: { code: 7 } }, '{"code":7}'],
    ['a list', { error: ['boom'] }, '"boom"'],
    ['an empty text', { error: '' }, 'the service gave no reason'],
    ['a category that is a number', { error: 'boom', category: 3 }, 'boom'],
    ['metrics beside it', { error: { message: 'boom' }, metrics: { 'loss:sum': 1 } }, 'boom'],
  ])('is no success when its error is %s', (_, body, said) => {
    const on = stage({ script: { 'retrieve_future OptimStep': json(body) } });
    const error = on.clock.reject(on.trainer().optimStep());
    expect(error).toBeInstanceOf(RequestFailedError);
    expect(error).toMatchObject({ message: said, category: 'unknown' });
  });

  it('is a success when its error is null', () => {
    const on = stage({ script: { 'retrieve_future OptimStep': json({ error: null, metrics: { a: 1 } }) } });
    expect(on.clock.resolve(on.trainer().optimStep())).toEqual({ metrics: { a: 1 } });
  });
});

it('a result that is nested too deeply is a TinkerError', () => {
  const on = stage({ script: { 'retrieve_future ForwardBackward': { ...json({}), body: deep(20_000) } } });
  expect(on.clock.reject(on.trainer().forwardBackward([datum()], 'cross_entropy'))).toMatchObject({
    code: 'invalid_response',
  });
});

it('retryBackoff waits as long as the server asked: it tried again after half a second', () => {
  const clock = new VirtualClock();
  const tries: number[] = [];
  const call = defer(() => {
    tries.push(clock.now());
    return throwError(() => statusError(refusal(429, 'later', { 'retry-after': '7' }), 'POST /x', clock.now()));
  });
  call.pipe(retryBackoff({ maxRetries: 2, scheduler: clock, random: () => 0.5 })).subscribe({ error: () => {} });
  clock.advanceTo(60_000);
  expect(tries).toEqual([0, 7000, 14_000]);
});

const deep = (depth: number): Uint8Array =>
  new TextEncoder().encode(`{"loss_fn_outputs":${'['.repeat(depth)}${']'.repeat(depth)}}`);
