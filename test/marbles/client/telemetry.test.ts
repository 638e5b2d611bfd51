import { NEVER } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  dropped,
  fakeTransport,
  json,
  refusal,
  VirtualClock,
  type FakeRequest,
  type FakeTransportOptions,
} from 'tinker-rx/testing';
import { ServiceClient } from 'tinker-rx';
import { connect } from '../../../src/client/connection/connect.js';
import { Telemetry } from '../../../src/client/session/Telemetry.js';
import { timedeltaText } from '../../../src/client/session/telemetryEvents.js';
import type { QueueState } from '../../../src/wire/futures.js';
import { EventBus, type TinkerEvent } from '../../../src/client/events.js';
import { prompt, stage, times } from './stage.js';

const PER_SAMPLE = new Set<string>(['request-sent', 'tokens-used', 'request-finished']);

type Sent = {
  event: string;
  event_name?: string;
  event_data?: Record<string, unknown>;
  severity: string;
  event_session_index: number;
};
const sent = (requests: readonly FakeRequest[]): Sent[] => requests.flatMap(({ json }) => json['events'] as Sent[]);
const reporting = (options: Omit<FakeTransportOptions, 'scheduler'> = {}) => stage(options, { telemetry: true });
afterEach(() => vi.unstubAllEnvs());

/** Telemetry by itself, and a way to have something to report. */
function alone(options: Omit<FakeTransportOptions, 'scheduler'> = {}) {
  const clock = new VirtualClock();
  const fake = fakeTransport({ scheduler: clock, ...options });
  const { connection } = connect(fake.clientOptions);
  const events: TinkerEvent[] = [];
  connection.events.events$.subscribe((event) => events.push(event));
  const telemetry = new Telemetry(connection, 'session-1', 'process-1', 'linux');
  const report = (count: number) => {
    for (let index = 0; index < count; index++)
      connection.events.emit({ type: 'dispatch-paused', pauseMs: index, waiting: 0 });
  };
  const lost = () =>
    events.flatMap((event) => (event.type === 'telemetry-dropped' ? [[event.events, event.reason]] : []));
  return { clock, fake, connection, telemetry, report, lost };
}

describe('telemetry', () => {
  it('goes out every ten seconds, in batches of a hundred', () => {
    const { clock, fake, report } = alone();
    report(249);
    clock.advanceTo(9999);
    expect(fake.to('telemetry')).toEqual([]);
    clock.advanceTo(20_000);
    expect(fake.to('telemetry').map(({ atMs, json }) => [atMs, (json['events'] as Sent[]).length])).toEqual([
      [10_000, 100],
      [10_000, 100],
      [10_000, 50],
    ]);
    expect(sent(fake.to('telemetry')).map(({ event_session_index: index }) => index)).toEqual(
      Array.from({ length: 250 }, (_, index) => index),
    );
  });

  it('and the log have no events made of every sample, which only a subscriber of events$ gets', () => {
    const clock = new VirtualClock();
    const fake = fakeTransport({ scheduler: clock });
    const service = new ServiceClient({ ...fake.clientOptions, telemetry: true, logLevel: 'debug' });
    const made = vi.spyOn(EventBus.prototype, 'emit');
    const perSample = () => made.mock.calls.map(([{ type }]) => type).filter((type) => PER_SAMPLE.has(type));
    try {
      const sampler = clock.resolve(service.createSamplingClient({ baseModel: 'any' }));
      clock.resolve(sampler.sample({ prompt: prompt() }));
      expect(perSample()).toEqual([]);
      service.events$.subscribe();
      clock.resolve(sampler.sample({ prompt: prompt() }));
      expect(new Set(perSample())).toEqual(PER_SAMPLE);
    } finally {
      made.mockRestore();
    }
  });

  it('says who it is', () => {
    const { clock, fake } = alone();
    clock.advanceTo(10_000);
    const { events, ...rest } = fake.to('telemetry')[0]!.json;
    expect(rest).toEqual({
      platform: 'linux',
      sdk_version: '0.36.0',
      session_id: 'session-1',
      process_uuid: 'process-1',
    });
    expect(events).toEqual([
      {
        event: 'SESSION_START',
        severity: 'INFO',
        event_id: 'uuid-0',
        event_session_index: 0,
        timestamp: '1970-01-01T00:00:00.000Z',
      },
    ]);
    expect(fake.to('telemetry')[0]!.lane).toBe('telemetry');
  });

  it('keeps at most ten thousand events, and says what it had to drop', () => {
    const { clock, fake, report, lost } = alone();
    report(10_050);
    clock.advanceTo(10_000);
    expect(sent(fake.to('telemetry'))).toHaveLength(10_000);
    expect(lost()).toEqual([[51, 'too many were waiting']]);
  });

  it.each([
    ['refused for now', refusal(500, 'down')],
    ['lost', dropped('reset')],
    ['not answered', NEVER],
  ])('that is %s is kept for the next try, with the start of the session in it', (_, reply) => {
    const { clock, fake, report, lost } = alone({ script: { telemetry: [reply] } });
    report(150);
    clock.advanceTo(20_000);
    expect(times(fake.to('telemetry'))).toEqual([10_000, 20_000, 20_000]);
    const [first, second, third] = fake.to('telemetry');
    expect(second!.json).toEqual(first!.json);
    expect(second!.headers['x-idempotency-key']).toBe(first!.headers['x-idempotency-key']);
    expect(sent([second!, third!]).map(({ event_session_index: index }) => index)).toEqual(
      Array.from({ length: 151 }, (__, index) => index),
    );
    expect(sent([second!])[0]).toMatchObject({ event: 'SESSION_START' });
    expect(lost()).toEqual([]);
  });

  it('that can never arrive is dropped, and an event says so', () => {
    const { clock, fake, report, lost } = alone({ script: { telemetry: [refusal(404, 'no such thing')] } });
    report(150);
    clock.advanceTo(30_000);
    expect(times(fake.to('telemetry'))).toEqual([10_000, 10_000]);
    expect(lost()).toEqual([[100, 'POST /api/v1/telemetry: 404 no such thing']]);
  });

  it('is tried three times while the client closes, so that the end of the session arrives', () => {
    const { clock, fake, telemetry, lost } = alone({
      script: { telemetry: [refusal(503), refusal(503), (): undefined => undefined] },
    });
    clock.advanceTo(5000);
    clock.resolve(telemetry.drain());
    expect(times(fake.to('telemetry'))).toEqual([5000, 6000, 7000]);
    expect(sent(fake.to('telemetry').slice(2)).map(({ event }) => event)).toEqual(['SESSION_START', 'SESSION_END']);
    expect(lost()).toEqual([]);
  });

  it('that did not arrive in the end is told as dropped', () => {
    const { clock, fake, telemetry, report, lost } = alone({ script: { telemetry: refusal(503, 'down') } });
    report(148);
    clock.resolve(telemetry.drain());
    expect(times(fake.to('telemetry'))).toEqual([0, 1000, 2000]);
    expect(lost()).toEqual([[150, 'POST /api/v1/telemetry: 503 down']]);
  });

  it('has five seconds to be answered', () => {
    const { clock, fake } = alone({ script: { telemetry: [NEVER] } });
    clock.advanceTo(20_000);
    expect(fake.to('telemetry').map(({ state, endedMs }) => [state, endedMs])).toEqual([
      ['aborted', 15_000],
      ['answered', 20_000],
    ]);
  });

  it('is drained at the end, with what is on its way', () => {
    const { clock, fake, telemetry, report } = alone({ latencyMs: 2000 });
    clock.advanceTo(10_500);
    report(150);
    clock.resolve(telemetry.drain());
    expect(clock.now()).toBe(16_000);
    expect(fake.to('telemetry').map(({ atMs, state }) => [atMs, state])).toEqual([
      [10_000, 'answered'],
      [12_000, 'answered'],
      [14_000, 'answered'],
    ]);
    expect(sent(fake.to('telemetry')).at(-1)).toMatchObject({ event: 'SESSION_END', duration: '0:00:10.500000' });
    clock.advanceBy(60_000);
    expect(fake.to('telemetry')).toHaveLength(3);
  });

  it('is drained for half a minute at the most', () => {
    const { clock, fake, telemetry, report } = alone({ latencyMs: 4000 });
    report(5000);
    clock.resolve(telemetry.drain());
    expect(clock.now()).toBe(30_000);
    expect(fake.requests.filter(({ state }) => state === 'open')).toEqual([]);
  });

  it('tells of waits, without headers and data', () => {
    const on = reporting({ script: { optim_step: [refusal(503, 'down')] } });
    on.clock.resolve(on.trainer().optimStep());
    on.clock.resolve(on.service.close());
    const events = sent(on.fake.to('telemetry'));
    expect(events.map(({ event, event_name: name, severity }) => [name ?? event, severity])).toEqual([
      ['SESSION_START', 'INFO'],
      ['tinker-rx.request-retry', 'WARNING'],
      ['SESSION_END', 'INFO'],
    ]);
    expect(events[1]!.event_data).toEqual({
      path: 'optim_step',
      attempt: 1,
      delayMs: 1000,
      error: {
        name: 'InternalServerError',
        code: 'server',
        message: 'POST /api/v1/optim_step: 503 down',
        retryable: true,
      },
      requestType: 'OptimStep',
      target: 'session-1:train:0',
    });
  });

  it('tells at once of a call that failed by the user’s fault: user_error', () => {
    const on = reporting({ script: { optim_step: refusal(422, 'bad') } });
    on.clock.reject(on.trainer().optimStep());
    const event = sent(on.fake.to('telemetry')).at(-1);
    expect(event).toMatchObject({ event: 'GENERIC_EVENT', event_name: 'user_error', severity: 'WARNING' });
    expect(event!.event_data).toEqual({
      error_type: 'UnprocessableEntityError',
      message: 'POST /api/v1/optim_step: 422 bad',
      status_code: 422,
      body: { detail: 'bad' },
    });
  });

  it('tells at once of a call that failed otherwise: UNHANDLED_EXCEPTION', () => {
    const on = reporting({
      script: { 'retrieve_future OptimStep': json({ error: 'boom', category: 'server' }) },
    });
    on.clock.reject(on.trainer().optimStep());
    expect(sent(on.fake.to('telemetry')).at(-1)).toEqual({
      event: 'UNHANDLED_EXCEPTION',
      severity: 'ERROR',
      error_type: 'RequestFailedError',
      error_message: expect.stringContaining('boom') as string,
      traceback: expect.stringContaining('RequestFailedError') as string,
      event_id: expect.any(String) as string,
      event_session_index: 1,
      timestamp: '1970-01-01T00:00:00.000Z',
    });
  });

  it('does not tell of what a program ended by its own will', () => {
    const on = reporting({ workMs: ({ path }) => (path === 'optim_step' ? 60_000 : 0) });
    const step = on.trainer().optimStep();
    step.cancel();
    on.clock.reject(step);
    on.clock.resolve(on.service.close());
    on.clock.reject(on.service.getServerCapabilities());
    expect(sent(on.fake.to('telemetry')).map(({ event }) => event)).toEqual(['SESSION_START', 'SESSION_END']);
  });

  it('of failures does not hurry while the service cannot take it', () => {
    const on = reporting({ script: { telemetry: refusal(503), optim_step: refusal(403) } });
    const model = on.trainer();
    for (let step = 0; step < 50; step++) on.clock.reject(model.optimStep());
    on.clock.advanceTo(25_000);
    expect(times(on.fake.to('telemetry'))).toEqual([0, 10_000, 20_000]);
  });

  it('tells of queues that wait, each state of each target once a minute', () => {
    const { clock, fake, connection } = alone();
    const say = (target: string, state: QueueState) =>
      connection.events.emit({
        type: 'queue-state',
        requestId: 'r',
        requestType: 'Sample',
        target,
        state,
        reason: undefined,
        waitedMs: 1,
      });
    for (let sample = 0; sample < 500; sample++) say('a', 'paused_capacity');
    say('a', 'paused_rate_limit');
    say('b', 'paused_capacity');
    say('b', 'active');
    clock.advanceTo(60_000);
    say('a', 'paused_capacity');
    clock.advanceTo(70_000);
    expect(
      sent(fake.to('telemetry')).map(({ event_name: name, event_data: data }) => [
        name,
        data?.['target'],
        data?.['state'],
      ]),
    ).toEqual([
      [undefined, undefined, undefined],
      ['tinker-rx.queue-state', 'a', 'paused_capacity'],
      ['tinker-rx.queue-state', 'a', 'paused_rate_limit'],
      ['tinker-rx.queue-state', 'b', 'paused_capacity'],
      ['tinker-rx.queue-state', 'a', 'paused_capacity'],
    ]);
  });

  it('names one process, whatever the number of its clients, and its platform as Python does', () => {
    const batches = [reporting(), reporting()].map((on) => {
      on.sampler();
      on.clock.advanceTo(10_000);
      return on.fake.to('telemetry')[0]!.json;
    });
    expect(batches[0]!['process_uuid']).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(batches[1]!['process_uuid']).toBe(batches[0]!['process_uuid']);
    // Of this machine's own Python, where there is one: python3 -c 'import platform; print(platform.system())'.
    expect(batches[0]!['platform']).toBe(
      { linux: 'Linux', darwin: 'Darwin', win32: 'Windows' }[process.platform as 'linux'],
    );
  });

  it.each([
    [0, '0:00:00'],
    [10_500, '0:00:10.500000'],
    [67, '0:00:00.067000'],
    [3_600_000 * 25 + 61_001, '1 day, 1:01:01.001000'],
    [86_400_000 * 12, '12 days, 0:00:00'],
  ])('writes %s ms as Python’s str(timedelta): %s', (ms, text) => {
    expect(timedeltaText(ms)).toBe(text);
  });

  it('never fails or delays a call', () => {
    const on = reporting({ script: { telemetry: refusal(500), optim_step: [refusal(503)] } });
    const model = on.trainer();
    on.clock.resolve(model.optimStep());
    on.clock.advanceTo(60_000);
    on.clock.resolve(model.optimStep());
    expect(on.clock.now()).toBe(60_000);
    on.clock.resolve(on.service.close());
  });

  it('starts with the session, not before', () => {
    const on = reporting();
    on.clock.resolve(on.service.getServerCapabilities());
    on.clock.advanceTo(60_000);
    on.clock.resolve(on.service.close());
    expect(on.fake.to('telemetry')).toEqual([]);
  });

  it.each([
    ['0', false],
    ['false', false],
    ['1', true],
    [undefined, true],
  ])('is on unless the environment says otherwise (TINKER_TELEMETRY=%s)', (value, wanted) => {
    vi.stubEnv('TINKER_TELEMETRY', value);
    const clock = new VirtualClock();
    const fake = fakeTransport({ scheduler: clock });
    const { telemetry: _, ...options } = fake.clientOptions;
    const service = new ServiceClient(options);
    clock.resolve(service.createSamplingClient({ baseModel: 'any' }));
    clock.advanceTo(10_000);
    expect(fake.to('telemetry')).toHaveLength(wanted ? 1 : 0);
  });
});
