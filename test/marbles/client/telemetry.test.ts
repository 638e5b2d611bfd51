import { NEVER } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  dropped,
  fakeTransport,
  refusal,
  VirtualClock,
  type FakeRequest,
  type FakeTransportOptions,
} from 'tinker-rx/testing';
import { ServiceClient } from 'tinker-rx';
import { connect } from '../../../src/client/connection/connect.js';
import { Telemetry } from '../../../src/client/session/Telemetry.js';
import type { TinkerEvent } from '../../../src/client/events.js';
import { stage, times } from './stage.js';

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
  return { clock, fake, telemetry, report, lost };
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
    ['refused', refusal(500, 'down'), 'POST /api/v1/telemetry: 500 down'],
    ['lost', dropped('reset'), 'POST /api/v1/telemetry: reset'],
  ])('that is %s is dropped, and the next goes out', (_, reply, reason) => {
    const { clock, fake, report, lost } = alone({ script: { telemetry: [reply] } });
    report(150);
    clock.advanceTo(30_000);
    expect(times(fake.to('telemetry'))).toEqual([10_000, 10_000]);
    expect(lost()).toEqual([[100, reason]]);
  });

  it('has five seconds to be answered', () => {
    const { clock, fake } = alone({ script: { telemetry: [NEVER] } });
    clock.advanceTo(20_000);
    expect(fake.to('telemetry').map(({ state, endedMs }) => [state, endedMs])).toEqual([['aborted', 15_000]]);
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
    expect(sent(fake.to('telemetry')).at(-1)).toMatchObject({ event: 'SESSION_END', duration: '10.500s' });
    clock.advanceBy(60_000);
    expect(fake.to('telemetry')).toHaveLength(3);
  });

  it('is drained for half a minute at the most', () => {
    const { clock, fake, telemetry, report } = alone({ script: { telemetry: NEVER } });
    report(5000);
    clock.resolve(telemetry.drain());
    expect(clock.now()).toBe(30_000);
    expect(fake.requests.filter(({ state }) => state === 'open')).toEqual([]);
  });

  it('reports failures and waits, without headers and data, and by whose fault', () => {
    const on = reporting({ script: { optim_step: [refusal(503, 'down'), refusal(422, 'bad')] } });
    on.clock.reject(on.trainer().optimStep());
    on.clock.resolve(on.service.close());
    const events = sent(on.fake.to('telemetry'));
    expect(events.map(({ event, event_name: name, severity }) => [name ?? event, severity])).toEqual([
      ['SESSION_START', 'INFO'],
      ['tinker-rx.request-retry', 'WARNING'],
      ['tinker-rx.request-failed', 'WARNING'],
      ['SESSION_END', 'INFO'],
    ]);
    expect(events[1]!.event_data).toEqual({
      path: 'optim_step',
      attempt: 1,
      delayMs: 1000,
      error: { code: 'server', message: 'POST /api/v1/optim_step: 503 down', retryable: true },
      requestType: 'OptimStep',
      target: 'session-1:train:0',
    });
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
