import { describe, expect, it } from 'vitest';
import { dropped, json, refusal } from 'tinker-rx/testing';
import { prompt, stage, times } from './stage.js';

const flags = (fields: object) => json({ refresh_interval_sec: 20, ...fields });

describe('the dynamic configuration', () => {
  it('is fetched with the session and again after each interval it names', () => {
    const on = stage({ script: { 'client/dynamic_config': [flags({}), flags({ refresh_interval_sec: 50 })] } });
    on.sampler();
    on.clock.advanceTo(100_000);
    expect(times(on.fake.to('client/dynamic_config'))).toEqual([0, 20_000, 70_000]);
  });

  it('is fetched every five minutes by default', () => {
    const on = stage();
    on.sampler();
    on.clock.advanceTo(600_000);
    expect(times(on.fake.to('client/dynamic_config'))).toEqual([0, 300_000, 600_000]);
  });

  it.each([0, -5, 1])('is never fetched sooner than ten seconds after the last time (interval %i)', (seconds) => {
    const on = stage({ dynamicConfig: { refreshIntervalSec: seconds } });
    on.sampler();
    on.clock.advanceTo(30_000);
    expect(times(on.fake.to('client/dynamic_config'))).toEqual([0, 10_000, 20_000, 30_000]);
  });

  it('keeps its last values when a refresh fails, and tries again at the next interval', () => {
    const on = stage({
      script: { 'client/dynamic_config': [flags({ sample_cancel_enabled: true }), refusal(503), dropped(), json(7)] },
      workMs: ({ path }) => (path === 'asample' ? 1000 : 0),
    });
    const sampler = on.sampler();
    on.clock.advanceTo(60_000);
    expect(times(on.fake.to('client/dynamic_config'))).toEqual([0, 20_000, 40_000, 60_000]);
    sampler.sample({ prompt: prompt() }).cancel();
    expect(on.fake.to('cancel_future')).toHaveLength(1);
  });

  it('has its defaults where a server lacks the endpoint', () => {
    const on = stage({ script: { 'client/dynamic_config': refusal(404, 'Not Found'), 'client/config': refusal(404) } });
    on.sampler();
    on.clock.advanceTo(300_000);
    expect(times(on.fake.to('client/dynamic_config'))).toEqual([0, 300_000]);
  });

  it('is read for each request: a sample is cancelled on the server only while that is wanted', () => {
    const on = stage({
      script: { 'client/dynamic_config': [flags({}), flags({ sample_cancel_enabled: true }), flags({})] },
      workMs: ({ path }) => (path === 'asample' ? 1000 : 0),
    });
    const sampler = on.sampler();
    for (const atMs of [10_000, 30_000, 50_000]) {
      on.clock.advanceTo(atMs);
      sampler.sample({ prompt: prompt() }).cancel();
    }
    on.clock.advanceBy(1000);
    expect(on.fake.to('cancel_future').map(({ atMs, json: body }) => [atMs, body])).toEqual([
      [30_000, { request_id: 'session-1:sample:0:1' }],
    ]);
    expect(on.eventsOf('request-abandoned').map(({ cancelled }) => cancelled)).toEqual([false, true, false]);
    expect(on.eventsOf('config-changed')).toHaveLength(2);
  });

  it('bounds how many cancellations are under way at once', () => {
    const on = stage({
      dynamicConfig: { sampleCancelEnabled: true, sampleCancelMaxBatchSize: 2 },
      workMs: ({ path }) => (path === 'asample' ? 60_000 : 0),
      latencyMs: ({ path }) => (path === 'cancel_future' ? 1000 : 0),
    });
    const sampler = on.sampler();
    const samples = Array.from({ length: 5 }, () => sampler.sample({ prompt: prompt() }));
    for (const sample of samples) sample.cancel();
    on.clock.advanceBy(5000);
    expect(times(on.fake.to('cancel_future'))).toEqual([0, 0, 1000, 1000, 2000]);
  });

  it.each([
    ['all of them', 1000, [0, 0, 1000, 1000, 2000], 3000],
    ['those of five seconds', 4000, [0, 0, 4000, 4000], 5000],
  ])('lets the cancellations out before a destroyed client ends its session: %s', (_, latencyMs, cancels, endedMs) => {
    const on = stage({
      dynamicConfig: { sampleCancelEnabled: true, sampleCancelMaxBatchSize: 2 },
      workMs: ({ path }) => (path === 'asample' ? 60_000 : 0),
      latencyMs: ({ path }) => (path === 'cancel_future' ? latencyMs : 0),
    });
    const sampler = on.sampler();
    for (let count = 0; count < 5; count++) sampler.sample({ prompt: prompt() });
    on.clock.resolve(on.service.destroy());
    expect(times(on.fake.to('cancel_future'))).toEqual(cancels);
    expect(times(on.fake.to('sessions/session-1/finish'))).toEqual([endedMs]);
  });

  it('is harmed by no cancellation that fails', () => {
    const on = stage({
      dynamicConfig: { sampleCancelEnabled: true },
      workMs: ({ path }) => (path === 'asample' ? 60_000 : 0),
      script: { cancel_future: [refusal(404), refusal(500)] },
    });
    const sampler = on.sampler();
    const samples = [1, 2, 3].map(() => sampler.sample({ prompt: prompt() }));
    for (const sample of samples) sample.cancel();
    on.clock.advanceBy(1000);
    expect(times(on.fake.to('cancel_future'))).toEqual([0, 0, 0, 1000]);
  });

  it('changes how many cancellations are sent at once when it is refreshed', () => {
    const wide = { sample_cancel_enabled: true, sample_cancel_max_batch_size: 3 };
    const on = stage({
      script: { 'client/dynamic_config': [flags({ ...wide, sample_cancel_max_batch_size: 1 }), flags(wide)] },
      latencyMs: ({ path }) => (path === 'cancel_future' ? 1000 : 0),
      workMs: ({ path }) => (path === 'asample' ? 1_000_000 : 0),
    });
    const sampler = on.sampler();
    const cancelThree = () =>
      [1, 2, 3].map(() => sampler.sample({ prompt: prompt() })).forEach((sample) => sample.cancel());
    on.clock.advanceTo(10_000);
    cancelThree();
    on.clock.advanceTo(30_000);
    cancelThree();
    on.clock.advanceTo(40_000);
    expect(times(on.fake.to('cancel_future'))).toEqual([10_000, 11_000, 12_000, 30_000, 30_000, 30_000]);
  });
});
