import type { SchedulerLike } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { refusal, VirtualClock, fakeTransport } from 'tinker-rx/testing';
import { ServiceClient } from 'tinker-rx';
import { steady } from '../../../src/transport/schedulers.js';
import { steadyClock } from '../../../src/support/steadyClock.js';
import { prompt, times } from './stage.js';

const HOUR_MS = 3_600_000;

/** A client whose machine's clock can be set while timers run on. */
function stageWithClock(script: Parameters<typeof fakeTransport>[0]['script']) {
  const clock = new VirtualClock();
  let offsetMs = 0;
  const set: SchedulerLike = { now: () => clock.now() + offsetMs, schedule: clock.schedule.bind(clock) };
  const fake = fakeTransport({ scheduler: clock, ...(script === undefined ? {} : { script }) });
  const service = new ServiceClient({ ...fake.clientOptions, scheduler: steady(set) });
  return {
    ...{ clock, fake, service },
    setBy: (ms: number) => (offsetMs += ms),
  };
}

describe('a clock that is set', () => {
  it('back by an hour during a pause held all samples for an hour', () => {
    const { clock, fake, service, setBy } = stageWithClock({ asample: [refusal(429, 'slow down')] });
    const sampler = clock.resolve(service.createSamplingClient({ baseModel: 'any' }));
    const first = sampler.sample({ prompt: prompt() });
    setBy(-HOUR_MS);
    const second = sampler.sample({ prompt: prompt() });
    clock.resolve(first);
    clock.resolve(second);
    expect(Math.max(...times(fake.to('asample')))).toBeLessThan(5000);
  });

  it('forward by an hour, as after sleep, ended the five minutes of retries at the first failure', () => {
    const { clock, fake, service, setBy } = stageWithClock({
      optim_step: [refusal(503, 'away'), refusal(503, 'away')],
    });
    const trainer = clock.resolve(service.createLoraTrainingClient({ baseModel: 'any' }));
    const step = trainer.optimStep();
    setBy(HOUR_MS);
    clock.resolve(step);
    expect(fake.to('optim_step')).toHaveLength(3);
  });
});

describe('steadyClock', () => {
  it('never goes back, and advances by a minute at most between two looks', () => {
    let rawMs = 1000;
    const now = steadyClock(() => rawMs);
    const after = (ms: number) => {
      rawMs += ms;
      return now();
    };
    expect([after(10), after(-HOUR_MS), after(5), after(HOUR_MS), after(60_000), after(0)]).toEqual([
      1010, 1010, 1015, 61_015, 121_015, 121_015,
    ]);
  });
});
