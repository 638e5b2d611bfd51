import { describe, expect, it } from 'vitest';
import { type Calls, EventState, type Load } from 'tinker-rx/dashboard';
import { waitsOf } from '../../../src/dashboard/page/waits.js';
import { loadOf } from '../../../src/dashboard/server/loadOf.js';

const budgets = (more: Partial<NonNullable<Load['budgets']>> = {}): NonNullable<Load['budgets']> => ({
  sampleSlots: { inUse: 0, size: 400, waiting: 0 },
  sampleBytes: { inUse: 0, size: 1024, waiting: 0 },
  trainingBytes: { inUse: 0, size: 2048, waiting: 0 },
  resultBytes: { inUse: 0, size: 4096, waiting: 0 },
  ...more,
});
const calls = (requestType: string, more: Partial<Calls> = {}): Calls => ({
  requestType,
  target: 'm',
  count: 1,
  sinceMs: 0,
  before: 0,
  ...more,
});
const withLoad = (unsent: readonly Calls[], more: Partial<Load> = {}): EventState => {
  const events = new EventState();
  events.setLoad({ atMs: 0, calls: 9, unsent, accepted: [], budgets: budgets(), ...more });
  return events;
};
const said = (events: EventState, nowMs = 100): [string, number, string][] =>
  waitsOf(events, nowMs).map(({ what, count, why }) => [what, count, why]);
const error = (message: string) => ({ code: 'server', message });

describe('what calls wait for that the service has not accepted', () => {
  it('is the service, and the turn of those after', () => {
    const events = withLoad([
      calls('ForwardBackward'),
      calls('OptimStep', { before: 1 }),
      calls('SaveWeights', { before: 2 }),
      calls('', { target: '' }),
    ]);
    expect(said(events)).toStrictEqual([
      ['ForwardBackward', 1, 'the service to accept it'],
      ['OptimStep', 1, 'its turn: one call of this model before it'],
      ['SaveWeights', 1, 'its turn: 2 calls of this model before it'],
      ['Question', 1, 'an answer'],
    ]);
  });

  it('is the next try, for the one that backs off', () => {
    const events = withLoad([calls('ForwardBackward'), calls('ForwardBackward', { target: 'other' })]);
    events.apply({
      type: 'request-retry',
      atMs: 0,
      delayMs: 2100,
      attempt: 3,
      path: 'forward_backward',
      requestType: 'ForwardBackward',
      target: 'm',
      error: error('no room'),
    });
    expect(said(events)).toStrictEqual([
      ['ForwardBackward', 1, 'its next try in 2.0 s: no room (failed 3 times)'],
      ['ForwardBackward', 1, 'the service to accept it'],
    ]);
    expect(said(events, 3000)[0]![2]).toBe('the service to accept it');
  });

  it('is billing, but not for those whose turn it is not', () => {
    const events = withLoad([calls('ForwardBackward'), calls('OptimStep', { before: 1 }), calls('Sample')]);
    events.apply({ type: 'billing-paused', atMs: 0, pausedMs: 0, reason: 'the account is empty' });
    expect(said(events).map(([what, , why]) => [what, why])).toStrictEqual([
      ['ForwardBackward', 'billing: the account is empty'],
      ['Sample', 'billing: the account is empty'],
      ['OptimStep', 'its turn: one call of this model before it'],
    ]);
  });

  it('is room in a budget, a slot, or the end of a pause, for samples', () => {
    const samples = calls('Sample', { count: 1000 });
    const full = budgets({
      sampleSlots: { inUse: 400, size: 400, waiting: 500 },
      sampleBytes: { inUse: 2048, size: 1024, waiting: 100 },
    });
    expect(said(withLoad([samples], { budgets: full }))).toStrictEqual([
      ['Sample', 100, 'room in the budget: 2 KiB of 1 KiB of prompts are being sent'],
      ['Sample', 300, 'the service to accept it'],
      ['Sample', 500, 'its turn to be sent: 400 at once are the limit, and all are taken'],
      ['Sample', 100, 'a sample of its client to finish first'],
    ]);
    const some = withLoad([calls('Sample', { count: 3 })], {
      budgets: budgets({ sampleSlots: { inUse: 3, size: 400, waiting: 0 } }),
    });
    const work = { requestType: 'Sample', path: 'asample' };
    some.apply({ type: 'request-retry', atMs: 0, ...work, delayMs: 1100, attempt: 1, error: error('503') });
    expect(said(some)).toStrictEqual([
      ['Sample', 1, 'its next try in 1.0 s: 503'],
      ['Sample', 2, 'the service to accept it'],
    ]);
    const paused = withLoad([samples]);
    paused.apply({ type: 'dispatch-paused', atMs: 0, pauseMs: 5100, waiting: 3 });
    expect(said(paused)).toStrictEqual([
      [
        'Sample',
        1000,
        'the end of the pause in 5.0 s: the service asked to slow down (429); 3 more wait for their turn',
      ],
    ]);
    const training = budgets({ trainingBytes: { inUse: 4096, size: 2048, waiting: 1 } });
    expect(said(withLoad([calls('Forward')], { budgets: training }))[0]![2]).toBe(
      'room in the budget: 4 KiB of 2 KiB of training data are being sent',
    );
  });

  it('is known of pauses alone, where the client cannot be asked', () => {
    const events = new EventState();
    events.apply({ type: 'request-retry', atMs: 0, delayMs: 1100, path: 'optim_step', error: error('busy') });
    events.apply({ type: 'billing-paused', atMs: 0, pausedMs: 0, reason: 'empty' });
    expect(said(events)).toStrictEqual([
      ['optim_step', 1, 'its next try in 1.0 s: busy'],
      ['Everything', 1, 'billing: empty'],
    ]);
  });
});

describe('what requests wait for that the service has accepted', () => {
  const work = { requestType: 'ForwardBackward', requestId: 'r1', target: 'm' };

  it('is the result, the queue with its reason, or the next poll of that request', () => {
    const events = new EventState();
    events.apply({ type: 'request-sent', atMs: 0, ...work, bytes: 7 });
    events.apply({ type: 'request-sent', atMs: 1, ...work, requestId: 'r2' });
    expect(said(events).map(([, , why]) => why)).toStrictEqual(['the result', 'the result']);
    const retry = { type: 'request-retry', path: 'retrieve_future', delayMs: 1100, error: error('502') };
    events.apply({ ...retry, atMs: 0, ...work, requestId: 'r2', attempt: 1 });
    events.apply({ type: 'queue-state', atMs: 2, ...work, state: 'paused_capacity', reason: 'busy' });
    expect(said(events).map(([, , why]) => why)).toStrictEqual([
      'capacity: the service is short of it (busy)',
      'the next time it is asked for, in 1.0 s: 502',
    ]);
  });

  it('is told of many together', () => {
    const events = new EventState();
    for (let id = 0; id < 50; id++) {
      events.apply({
        type: 'request-sent',
        atMs: id,
        requestType: 'Sample',
        requestId: `s${id}`,
        target: 's',
        bytes: 10,
      });
    }
    expect(waitsOf(events, 100)).toMatchObject([{ what: 'Sample', count: 50, sinceMs: 0, bytes: 500, target: 's' }]);
  });

  it('is a new try, for a sample whose promise was lost', () => {
    const events = withLoad([], { accepted: [calls('Sample', { target: 's', count: 2 })] });
    events.apply({ type: 'sample-resubmitted', atMs: 0, target: 's', delayMs: 600, attempt: 1, error: error('gone') });
    expect(said(events)).toStrictEqual([
      ['Sample', 1, 'its next try in 0.5 s: gone'],
      ['Sample', 1, 'the result'],
    ]);
  });
});

describe('loadOf', () => {
  const call = (requestType: 'Sample' | 'OptimStep' | 'ForwardBackward', target: string, requestId?: string) => ({
    requestType,
    target,
    sinceMs: 5,
    requestId,
  });

  it('tells training calls one by one, with those before them, and samples together', () => {
    const load = loadOf(
      {
        calls: [
          call('ForwardBackward', 'm', 'open'),
          call('ForwardBackward', 'm', 'unknown'),
          call('ForwardBackward', 'm'),
          call('OptimStep', 'm'),
          ...Array.from({ length: 30 }, () => call('Sample', 's')),
        ],
        budgets: undefined,
      },
      7,
      (id) =>
        id === 'open'
          ? { requestId: id, requestType: 'ForwardBackward', target: 'm', bytes: 0, sinceMs: 0, state: 'sent' }
          : undefined,
    );
    expect(load).toStrictEqual({
      atMs: 7,
      calls: 34,
      unsent: [
        { requestType: 'ForwardBackward', target: 'm', count: 1, sinceMs: 5, before: 1 },
        { requestType: 'OptimStep', target: 'm', count: 1, sinceMs: 5, before: 2 },
        { requestType: 'Sample', target: 's', count: 30, sinceMs: 5, before: 0 },
      ],
      accepted: [{ requestType: 'ForwardBackward', target: 'm', count: 1, sinceMs: 5, before: 0 }],
    });
  });

  it('has a loss of its own keep the turn while its first pass is under way', () => {
    const load = loadOf(
      { calls: [call('ForwardBackward', 'm', 'first'), call('OptimStep', 'm')], budgets: undefined },
      0,
      (id) => ({ requestId: id, requestType: 'Forward', target: 'm', bytes: 0, sinceMs: 0, state: 'sent' }),
    );
    expect(load.unsent).toMatchObject([{ requestType: 'OptimStep', before: 1 }]);
  });
});
