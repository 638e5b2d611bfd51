import { filter, map } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ServiceClient } from 'tinker-rx';
import { fakeTransport, refusal, type Reply } from 'tinker-rx/testing';
import { marbles } from '../marbles.js';
import { prompt, stage, times } from './stage.js';

const slow = refusal(429, 'slow down');
const ofAsample =
  (ms: number) =>
  ({ path }: { path: string }) =>
    path === 'asample' ? ms : 0;

describe('a 429 to a sample', () => {
  // prettier-ignore
  it('pauses all dispatch for a second, then the same request goes out again', marbles((m) => {
    m.scheduler.maxFrames = 5000;
    const fake = fakeTransport({ scheduler: m.scheduler, script: { asample: [slow] } });
    const call = m.hot('        a 499ms b');
    const expected = '          a 999ms (ab)';
    const service = new ServiceClient(fake.clientOptions);
    service.createSamplingClient({ baseModel: 'any' }).subscribe((sampler) => {
      call.subscribe(() => void sampler.sample({ prompt: prompt() }));
    });
    const sent = fake.requests$.pipe(filter(({ path }) => path === 'asample'), map(({ seqId }) => 'ab'[seqId!]));
    m.expect(sent).toBeObservable(expected);
  }));

  it('is sent again under the same number and the same idempotency key', () => {
    const { clock, fake, sampler } = stage({ script: { asample: [slow, slow] } });
    clock.resolve(sampler().sample({ prompt: prompt() }));
    const sent = fake.to('asample');
    expect(times(sent)).toEqual([0, 1000, 2000]);
    expect(sent.map(({ seqId }) => seqId)).toEqual([0, 0, 0]);
    expect(new Set(sent.map(({ headers }) => headers['x-idempotency-key'])).size).toBe(1);
    expect(new Set(sent.map(({ body }) => body)).size).toBe(1);
  });

  it.each([
    ['a second for a prompt of 128 KiB', 13_107, {}, 1000],
    ['five seconds for a larger one', 13_108, {}, 5000],
    ['as long as Retry-After says', 3, { 'retry-after': '2.5' }, 2500],
    ['as long as Retry-After says, also for a large one', 20_000, { 'retry-after-ms': '300' }, 300],
    ['a second when Retry-After is nonsense', 3, { 'retry-after': 'soon' }, 1000],
  ])('pauses %s', (_, tokens, headers, pauseMs) => {
    const { clock, fake, sampler, eventsOf } = stage({ script: { asample: [refusal(429, 'slow', headers)] } });
    clock.resolve(sampler().sample({ prompt: prompt(tokens) }));
    expect(times(fake.to('asample'))).toEqual([0, pauseMs]);
    expect(eventsOf('dispatch-paused').map((event) => event.pauseMs)).toEqual([pauseMs]);
  });

  it('never fails the call', () => {
    const { clock, fake, sampler } = stage({ script: { asample: Array<Reply>(1000).fill(slow) } });
    clock.resolve(sampler().sample({ prompt: prompt() }));
    expect(fake.to('asample')).toHaveLength(1001);
    expect(clock.now()).toBe(1_000_000);
  });

  it('leaves ten slots for the ten seconds after the pause', () => {
    const { clock, fake, sampler } = stage({ latencyMs: ofAsample(100), script: { asample: [slow] } });
    const client = sampler();
    client.sample({ prompt: prompt() });
    const burst = (atMs: number, count: number) => {
      clock.advanceTo(atMs);
      for (let index = 0; index < count; index++) client.sample({ prompt: prompt() });
    };
    // The pause ends at 1100.
    burst(1500, 25);
    burst(11_099, 15);
    burst(11_100, 30);
    clock.advanceBy(1000);
    const perMs = new Map<number, number>();
    for (const atMs of times(fake.to('asample'))) perMs.set(atMs, (perMs.get(atMs) ?? 0) + 1);
    expect([...perMs]).toEqual([
      [0, 1],
      [1100, 1],
      [1500, 10],
      [1600, 10],
      [1700, 5],
      [11_099, 10],
      // The five that still waited go first: nobody overtakes.
      [11_100, 35],
    ]);
  });

  it('counts every byte twenty times for the ten seconds after the pause', () => {
    const { clock, fake, sampler } = stage({
      latencyMs: ofAsample(100),
      script: { asample: [slow] },
      config: { sampleDispatchBytesSemaphoreSize: 1000 },
    });
    const client = sampler();
    client.sample({ prompt: prompt(10) });
    clock.advanceTo(2000);
    // 100 bytes each, counted as 2000: one overdraws the budget.
    for (let index = 0; index < 3; index++) client.sample({ prompt: prompt(10) });
    clock.advanceTo(12_000);
    for (let index = 0; index < 3; index++) client.sample({ prompt: prompt(10) });
    clock.advanceBy(1000);
    expect(times(fake.to('asample'))).toEqual([0, 1100, 2000, 2100, 2200, 12_000, 12_000, 12_000]);
  });
});
