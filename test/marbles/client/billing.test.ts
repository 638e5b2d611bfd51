import { describe, expect, it } from 'vitest';
import { BillingError } from 'tinker-rx';
import { refusal, type Reply } from 'tinker-rx/testing';
import { gaps, prompt, stage, times } from './stage.js';

const unpaid = refusal(402, 'no credit');
const MINUTE_MS = 60_000;

describe('a 402', () => {
  it('pauses, tries every five seconds for an hour, says so once a minute, then fails with BillingError', () => {
    const { clock, fake, trainer, eventsOf } = stage({ script: { optim_step: unpaid } });
    const error = clock.reject(trainer().optimStep()) as BillingError;
    expect(error).toBeInstanceOf(BillingError);
    expect(error).toMatchObject({ code: 'billing', status: 402, message: 'POST /api/v1/optim_step: 402 no credit' });
    expect(clock.now()).toBe(60 * MINUTE_MS + 5000);
    expect(new Set(gaps(fake.to('optim_step')))).toEqual(new Set([5000]));
    const said = eventsOf('billing-paused');
    expect(said.map(({ pausedMs }) => pausedMs)).toEqual(Array.from({ length: 61 }, (_, minute) => minute * MINUTE_MS));
    expect(said[0]!.message).toContain('no credit');
  });

  it('may pause as long as the service says', () => {
    const { clock, trainer } = stage({
      config: { billingExceptionMaxPauseDurationSec: 12 },
      script: { optim_step: unpaid },
    });
    expect(clock.reject(trainer().optimStep())).toBeInstanceOf(BillingError);
    expect(clock.now()).toBe(15_000);
  });

  it('goes on where it was once the account can pay, under the same number and key', () => {
    const { clock, fake, trainer } = stage({ script: { optim_step: [unpaid, unpaid] } });
    clock.resolve(trainer().optimStep());
    const sent = fake.to('optim_step');
    expect(times(sent)).toEqual([0, 5000, 10_000]);
    expect(new Set(sent.map(({ headers, seqId }) => `${seqId} ${headers['x-idempotency-key']}`)).size).toBe(1);
  });

  it('pauses polls, samples and session polls alike', () => {
    const polled = stage({ script: { 'retrieve_future OptimStep': [unpaid] } });
    polled.clock.resolve(polled.trainer().optimStep());
    expect(times(polled.fake.to('retrieve_future')).slice(-2)).toEqual([0, 5000]);

    const sampled = stage({ script: { asample: [unpaid] } });
    sampled.clock.resolve(sampled.sampler().sample({ prompt: prompt() }));
    expect(times(sampled.fake.to('asample'))).toEqual([0, 5000]);

    const session = stage({ config: { sampleUseRetrieveFutures: true }, script: { retrieve_futures: [unpaid] } });
    session.clock.resolve(session.sampler().sample({ prompt: prompt() }));
    expect(times(session.fake.to('retrieve_futures')).slice(0, 2)).toEqual([0, 5000]);
  });

  it('counts anew after five minutes without one', () => {
    const { clock, trainer, eventsOf } = stage({
      script: { optim_step: [unpaid, (): undefined => undefined, unpaid, (): undefined => undefined, unpaid] },
    });
    const model = trainer();
    clock.resolve(model.optimStep());
    clock.advanceTo(5 * MINUTE_MS);
    clock.resolve(model.optimStep());
    clock.advanceTo(10 * MINUTE_MS + 1);
    clock.resolve(model.optimStep());
    expect(eventsOf('billing-paused').map(({ atMs, pausedMs }) => [atMs, pausedMs])).toEqual([
      [0, 0],
      [5 * MINUTE_MS, 5 * MINUTE_MS],
      [10 * MINUTE_MS + 1, 0],
    ]);
  });

  it('takes nothing of the five minutes that a send may be tried', () => {
    const { clock, trainer } = stage({
      script: { optim_step: [...Array<Reply>(120).fill(unpaid), ...Array<Reply>(5).fill(refusal(503))] },
    });
    clock.resolve(trainer().optimStep());
    expect(clock.now()).toBe(10 * MINUTE_MS + 31_000);
  });
});
