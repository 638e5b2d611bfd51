import { NEVER, filter, map, type SchedulerLike } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ServiceClient } from 'tinker-rx';
import { dropped, fakeTransport, refusal } from 'tinker-rx/testing';
import type { TransportRequest } from '../../../src/transport/Transport.js';
import { marbles } from '../marbles.js';
import { stage, times } from './stage.js';

describe('the heartbeat', () => {
  // prettier-ignore
  it('goes out every ten seconds from the session on', marbles((m) => {
    m.scheduler.maxFrames = 30_000;
    const fake = fakeTransport({ scheduler: m.scheduler });
    const call = m.hot('   -----a');
    const expected = '     5ms 10s h 9999ms h';
    const service = new ServiceClient(fake.clientOptions);
    call.subscribe(() => void service.createSamplingClient({ baseModel: 'any' }));
    const beats = fake.requests$.pipe(filter(({ path }) => path === 'session_heartbeat'), map(() => 'h'));
    m.expect(beats).toBeObservable(expected);
  }));

  it('names the session, has a lane of its own kind and ten seconds to be answered, and is not tried again', () => {
    const on = stage({ script: { session_heartbeat: NEVER } });
    on.sampler();
    on.clock.advanceTo(35_000);
    const beats = on.fake.to('session_heartbeat');
    expect(times(beats)).toEqual([10_000, 20_000, 30_000]);
    expect(beats[0]!.json).toEqual({ session_id: 'session-1', type: 'session_heartbeat' });
    expect(beats.map(({ lane, state, endedMs }) => [lane, state, endedMs])).toEqual([
      ['session', 'aborted', 20_000],
      ['session', 'aborted', 30_000],
      ['session', 'open', undefined],
    ]);
  });

  it.each([
    ['refused', refusal(503, 'down')],
    ['lost', dropped()],
  ])('is reported missing once it has been %s for more than two minutes', (_, answer) => {
    const on = stage({ script: { session_heartbeat: answer } });
    on.sampler();
    on.clock.advanceTo(129_999);
    expect(on.eventsOf('heartbeat-missed')).toEqual([]);
    on.clock.advanceTo(150_000);
    expect(on.eventsOf('heartbeat-missed').map(({ silentMs, sessionId }) => [silentMs, sessionId])).toEqual([
      [130_000, 'session-1'],
      [140_000, 'session-1'],
      [150_000, 'session-1'],
    ]);
  });

  it('goes out and is reported missing by the clock while an answer trickles', () => {
    const on = stage();
    // A transport that says it keeps the time, and does not.
    const beats: number[] = [];
    const transport = Object.assign(
      (request: TransportRequest) => {
        if (!request.path.endsWith('session_heartbeat')) return on.fake.transport(request);
        beats.push(on.clock.now());
        return NEVER;
      },
      { timesOut: true },
    );
    const service = new ServiceClient({ ...on.fake.clientOptions, transport });
    const missed: number[] = [];
    service.events$.subscribe((event) => {
      if (event.type === 'heartbeat-missed') missed.push(event.silentMs);
    });
    on.clock.resolve(service.createSamplingClient({ baseModel: 'any' }));
    on.clock.advanceTo(145_000);
    expect(beats).toHaveLength(14);
    expect(missed).toEqual([130_000, 140_000]);
  });

  it('starts to count anew with each one that gets through', () => {
    let lost = true;
    const on = stage({ script: { session_heartbeat: () => (lost ? dropped() : undefined) } });
    on.sampler();
    on.clock.advanceTo(95_000);
    lost = false;
    on.clock.advanceTo(105_000);
    lost = true;
    on.clock.advanceTo(225_000);
    expect(on.eventsOf('heartbeat-missed')).toEqual([]);
    on.clock.advanceTo(230_000);
    expect(on.eventsOf('heartbeat-missed').map(({ silentMs }) => silentMs)).toEqual([130_000]);
  });

  it('stops when the service says that the session has finished', () => {
    const on = stage({ script: { session_heartbeat: [(): undefined => undefined, refusal(410, 'finished')] } });
    on.sampler();
    on.clock.advanceTo(60_000);
    expect(times(on.fake.to('session_heartbeat'))).toEqual([10_000, 20_000]);
    expect(on.eventsOf('session-finished')).toEqual([
      { type: 'session-finished', sessionId: 'session-1', status: 'ended-by-server', atMs: 20_000 },
    ]);
  });

  it('stops before the client finishes the session, which would refuse the next one', () => {
    const script = {
      'sessions/session-1/finish': NEVER,
      session_heartbeat: [(): undefined => undefined, refusal(410, 'finished')],
    };
    const on = stage({ script });
    on.sampler();
    on.clock.advanceTo(19_000);
    const closing = on.service.close();
    on.clock.advanceTo(60_000);
    on.clock.resolve(closing);
    expect(times(on.fake.to('session_heartbeat'))).toEqual([10_000]);
    expect(on.eventsOf('session-finished')).toEqual([]);
  });

  it('says that the event loop was blocked, and nothing where it was not', () => {
    const on = stage();
    let blockedMs = 0;
    const scheduler: SchedulerLike = {
      now: () => on.clock.now() + blockedMs,
      schedule: on.clock.schedule.bind(on.clock),
    };
    const service = new ServiceClient({ ...on.fake.clientOptions, scheduler });
    const said: number[] = [];
    service.events$.subscribe((event) => {
      if (event.type === 'loop-blocked') said.push(event.blockedMs);
    });
    on.clock.resolve(service.createSamplingClient({ baseModel: 'any' }));
    on.clock.advanceTo(35_000);
    expect(said).toEqual([]);
    blockedMs = 70_000;
    on.clock.advanceTo(65_000);
    expect(said).toEqual([70_000]);
    // It ended before the next heartbeat was due, and nobody was told.
    on.clock.advanceTo(71_500);
    blockedMs += 6000;
    on.clock.advanceTo(73_000);
    expect(said).toEqual([70_000, 6000]);
  });

  it('does not beat without a session', () => {
    const on = stage();
    on.clock.resolve(on.service.getServerCapabilities());
    on.clock.advanceTo(60_000);
    expect(on.fake.to('session_heartbeat')).toEqual([]);
  });

  it('stops with the client', () => {
    const on = stage();
    on.sampler();
    on.clock.advanceTo(15_000);
    on.clock.resolve(on.service.close());
    on.clock.advanceTo(60_000);
    expect(times(on.fake.to('session_heartbeat'))).toEqual([10_000]);
  });
});
