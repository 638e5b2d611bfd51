import { filter, map } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ServiceClient, type SamplingClient } from 'tinker-rx';
import { fakeTransport } from 'tinker-rx/testing';
import { marbles } from '../marbles.js';
import { prompt, stage, times } from './stage.js';

const HOUR_MS = 3_600_000;
const sampleMany = (sampler: SamplingClient, count: number, length = 3) =>
  Array.from({ length: count }, () => sampler.sample({ prompt: prompt(length) }));

describe('sampling dispatch', () => {
  it('has 400 slots, given back when the submission is answered and not when the sample is done', () => {
    const { clock, fake, sampler } = stage({
      workMs: HOUR_MS,
      latencyMs: ({ path }) => (path === 'asample' ? 1000 : 0),
    });
    sampleMany(sampler(), 450);
    clock.advanceBy(999);
    expect(fake.to('asample')).toHaveLength(400);
    clock.advanceBy(1);
    expect(times(fake.to('asample')).filter((atMs) => atMs === 1000)).toHaveLength(50);
    expect(fake.to('asample').map(({ seqId }) => seqId)).toEqual(Array.from({ length: 450 }, (_, index) => index));
    expect(fake.to('retrieve_future').every(({ state }) => state === 'open')).toBe(true);
  });

  it('shares the slots among all sampling clients of the service', () => {
    const { clock, fake, sampler } = stage({ latencyMs: ({ path }) => (path === 'asample' ? 1000 : 0) });
    const [one, other] = [sampler(), sampler()];
    sampleMany(one, 399);
    sampleMany(other, 2);
    clock.advanceBy(999);
    expect(fake.to('asample')).toHaveLength(400);
  });

  // prettier-ignore
  it('admits while the byte budget is not overdrawn, so that one sample may overshoot it', marbles((m) => {
    m.scheduler.maxFrames = 5000;
    const fake = fakeTransport({
      scheduler: m.scheduler,
      latencyMs: ({ path }) => (path === 'asample' ? 1000 : 0),
      config: { sampleDispatchBytesSemaphoreSize: 100 },
    });
    const expected = '(abc) 995ms (de)';   // 50 bytes each: 100 leave nothing, the third overshoots
    const service = new ServiceClient(fake.clientOptions);
    service.createSamplingClient({ baseModel: 'any' }).subscribe((sampler) => void sampleMany(sampler, 5, 5));
    const sent = fake.requests$.pipe(filter(({ path }) => path === 'asample'), map(({ seqId }) => 'abcde'[seqId!]));
    m.expect(sent).toBeObservable(expected);
  }));

  it('has at most as many samples in flight as the service allows', () => {
    const { clock, fake, sampler } = stage({ workMs: 1000, config: { sampleMaxConcurrentRequests: 3 } });
    sampleMany(sampler(), 5);
    clock.advanceBy(1000);
    expect(times(fake.to('asample'))).toEqual([0, 0, 0, 1000, 1000]);
  });

  it('has no such limit where one poll serves the whole session', () => {
    const { clock, fake, sampler } = stage({
      workMs: 1000,
      config: { sampleMaxConcurrentRequests: 3, sampleUseRetrieveFutures: true },
    });
    sampleMany(sampler(), 5);
    clock.advanceBy(0);
    expect(fake.to('asample')).toHaveLength(5);
  });

  it('sends no more for a sample that is cancelled while it waits for a slot', () => {
    const { clock, fake, sampler } = stage({ workMs: 1000, config: { sampleMaxConcurrentRequests: 1 } });
    const [, cancelled, last] = sampleMany(sampler(), 3);
    cancelled!.cancel();
    clock.resolve(last!);
    expect(fake.to('asample').map(({ seqId, atMs }) => [seqId, atMs])).toEqual([
      [0, 0],
      [1, 1000],
    ]);
  });
});
