import { describe, expect, it } from 'vitest';
import { GoneError, StuckError } from 'tinker-rx';
import { dropped, refusal, type Reply } from 'tinker-rx/testing';
import { gaps, prompt, stage, times } from './stage.js';

const HOUR_MS = 3_600_000;
const gone = (count: number): Reply[] => Array<Reply>(count).fill(refusal(410, 'expired'));

describe('a sample that fails in passing', () => {
  it.each([
    ['in the middle', 0.5, [500, 1000, 2000, 4000, 8000, 10_000, 10_000]],
    ['at the top, never above ten seconds', 1, [625, 1250, 2500, 5000, 10_000, 10_000, 10_000]],
    ['at the bottom', 0, [375, 750, 1500, 3000, 6000, 7500, 7500]],
  ])('is submitted again after 0.5 s · 2ⁿ, chance %s', (_, chance, expected) => {
    const on = stage({ script: { 'retrieve_future Sample': gone(7) } }, { random: () => chance });
    on.clock.resolve(on.sampler().sample({ prompt: prompt() }));
    expect(gaps(on.fake.to('asample'))).toEqual(expected);
    expect(on.fake.to('asample').map(({ seqId }) => seqId)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it('is submitted again after what the options say', () => {
    const on = stage({ script: { 'retrieve_future Sample': gone(4) } }, { random: () => 1 });
    const sampler = on.sampler({ baseModel: 'any', retry: { delayMs: 100, maxDelayMs: 500, jitter: 0.5 } });
    on.clock.resolve(sampler.sample({ prompt: prompt() }));
    expect(gaps(on.fake.to('asample'))).toEqual([150, 300, 500, 500]);
  });

  it('fails at once where the service or the options want no retries', () => {
    const byFlag = stage({ config: { sampleNoRetries: true }, script: { 'retrieve_future Sample': gone(1) } });
    expect(byFlag.clock.reject(byFlag.sampler().sample({ prompt: prompt() }))).toBeInstanceOf(GoneError);
    const byOption = stage({ script: { 'retrieve_future Sample': gone(1) } });
    const sampler = byOption.sampler({ baseModel: 'any', retry: { enabled: false } });
    expect(byOption.clock.reject(sampler.sample({ prompt: prompt() }))).toBeInstanceOf(GoneError);
  });

  it('goes on after five minutes of failed submissions, as a new request', () => {
    const on = stage({ script: { asample: () => (on.clock.now() < 320_000 ? dropped() : undefined) } });
    on.clock.resolve(on.sampler().sample({ prompt: prompt() }));
    const numbers = on.fake.to('asample').map(({ seqId }) => seqId);
    expect(new Set(numbers)).toEqual(new Set([0, 1]));
    expect(on.clock.now()).toBeLessThan(340_000);
  });

  it.each([
    ['a refusal', { asample: refusal(403, 'no') }, 'permission_denied'],
    ['a session that is gone', { asample: refusal(410, 'session finished') }, 'gone'],
    ['a bad request', { asample: refusal(400, 'prompt too long') }, 'bad_request'],
    ['an unknown promise', { 'retrieve_future Sample': refusal(404, 'unknown') }, 'not_found'],
  ])('is not submitted again after %s', (_, script, code) => {
    const on = stage({ script });
    expect(on.clock.reject(on.sampler().sample({ prompt: prompt() }))).toMatchObject({ code });
    expect(on.fake.to('asample')).toHaveLength(1);
  });
});

describe('samples that are stuck', () => {
  it('fail together after two hours in which none finished', () => {
    const on = stage({ workMs: ({ path }) => (path === 'asample' ? 100 * HOUR_MS : 0) });
    const sampler = on.sampler();
    const early = sampler.sample({ prompt: prompt() });
    on.clock.advanceTo(HOUR_MS);
    const late = sampler.sample({ prompt: prompt() });
    expect(on.clock.reject(early)).toBeInstanceOf(StuckError);
    expect(on.clock.now()).toBe(2 * HOUR_MS);
    expect(on.clock.reject(late)).toMatchObject({ code: 'stuck', retryable: true });
    expect(on.clock.now()).toBe(2 * HOUR_MS);
  });

  it('are waited for as long as any sample of the client finishes now and then', () => {
    const on = stage({ workMs: ({ json: { num_samples: count } }) => (count === 2 ? 7 * HOUR_MS : 0) });
    const sampler = on.sampler();
    const slow = sampler.sample({ prompt: prompt(), numSamples: 2 });
    for (let hour = 1; hour < 7; hour++) {
      on.clock.advanceTo(hour * HOUR_MS);
      on.clock.resolve(sampler.sample({ prompt: prompt() }));
    }
    expect(on.clock.resolve(slow).sequences).toHaveLength(2);
    expect(on.clock.now()).toBe(7 * HOUR_MS);
  });

  it('are not kept alive by those of another client', () => {
    const on = stage({ workMs: ({ json: { num_samples: count } }) => (count === 2 ? 7 * HOUR_MS : 0) });
    const [stuck, busy] = [on.sampler(), on.sampler()];
    const slow = stuck.sample({ prompt: prompt(), numSamples: 2 });
    on.clock.advanceTo(HOUR_MS);
    on.clock.resolve(busy.sample({ prompt: prompt() }));
    expect(on.clock.reject(slow)).toBeInstanceOf(StuckError);
    expect(on.clock.now()).toBe(2 * HOUR_MS);
  });

  it('are waited for without end where the service turned the detection off', () => {
    const on = stage({
      config: { sampleEnableStuckDetection: false },
      workMs: ({ path }) => (path === 'asample' ? 10 * HOUR_MS : 0),
    });
    on.clock.resolve(on.sampler().sample({ prompt: prompt() }));
    expect(on.clock.now()).toBe(10 * HOUR_MS);
  });

  it('leave nothing running behind', () => {
    const on = stage({ script: { asample: dropped() } });
    expect(on.clock.reject(on.sampler().sample({ prompt: prompt() }))).toBeInstanceOf(StuckError);
    const sent = times(on.fake.to('asample')).length;
    on.clock.advanceBy(HOUR_MS);
    expect(on.fake.to('asample')).toHaveLength(sent);
  });
});
