/** A long time in one process, in virtual time: the heap stays flat, and after `close()` no timer is left. */
import { defer, from, map, NEVER, of, take, timer } from 'rxjs';
import { afterAll, expect, it } from 'vitest';
import { ServiceClient } from '../../src/index.js';
import { json, refusal, VirtualClock } from '../../src/testing/index.js';
import type { Transport } from '../../src/transport/Transport.js';
import { datum, prompt } from '../marbles/client/stage.js';
import { Report } from './support/Report.js';
import { heapBytes, thirds } from './support/resources.js';

const report = new Report('soak in virtual time', ['requests sent', 'steps', 'samples']);
afterAll(() => report.print());

/** A service that keeps nothing of what it was asked: every seventh request is refused, work takes two seconds. */
function forgetful(clock: VirtualClock, count: () => void): Transport {
  let calls = 0;
  const promise = (id: string) => ({ request_id: id, sample_sequence_ids: ['one'] });
  const answers: Readonly<Record<string, unknown>> = {
    create_session: { session_id: 'session' },
    create_model: promise('model'),
    forward_backward: promise('pass'),
    optim_step: promise('step'),
    asample: promise('sample'),
    save_weights_for_sampler: promise('save'),
  };
  const results: Readonly<Record<string, unknown>> = {
    model: { model_id: 'session:train:0' },
    pass: { loss_fn_output_type: 'ArrayRecord', loss_fn_outputs: [], metrics: { 'loss:sum': 1 } },
    step: { metrics: {} },
    sample: { sequences: [{ stop_reason: 'stop', tokens: [1, 2], logprobs: [-1, -1] }] },
    save: { sampling_session_id: 'sampler' },
  };
  return ({ path, body }) =>
    defer(() => {
      count();
      if (++calls % 7 === 0) return of(refusal(503, 'away'));
      const name = path.replace('/api/v1/', '');
      if (name !== 'retrieve_future') return of(json(answers[name] ?? {}));
      const { request_id: id } = JSON.parse(String(body)) as { readonly request_id: string };
      return timer(2000, clock).pipe(map(() => json(results[id])));
    });
}

it(
  'an hour of steps, samples, saves, refusals and silence in virtual time leaves nothing behind',
  { timeout: 180_000 },
  () => {
    const clock = new VirtualClock();
    const transport = forgetful(clock, () => report.add('requests sent', 1));
    const service = new ServiceClient({ transport, scheduler: clock, apiKey: 'tml-soak', logLevel: 'silent' });
    const trainer = clock.resolve(service.createLoraTrainingClient({ baseModel: 'any' }));
    const heaps: number[] = [];
    let sampler = clock.resolve(trainer.saveWeightsAndGetSamplingClient());
    for (let step = 0; clock.now() < 3_600_000; step++) {
      const pass = trainer.forwardBackward([datum()], 'cross_entropy');
      const update = trainer.optimStep();
      const sample = sampler.sample({ prompt: prompt() });
      // Nobody waits for this one.
      const left = sampler.sample({ prompt: prompt() });
      clock.resolve(pass);
      clock.resolve(update);
      clock.resolve(sample);
      left.cancel();
      if (step % 20 === 0) sampler = clock.resolve(trainer.saveWeightsAndGetSamplingClient());
      report.add('steps', 1);
      report.add('samples', 1);
      // Seldom: to collect garbage takes longer than twenty steps.
      if (step % 60 === 0) heaps.push(heapBytes());
    }
    const { first, last } = thirds(heaps);
    report.add('virtual hour: heap of the first third, kB', Math.round(first / 1024));
    report.add('virtual hour: heap of the last third, kB', Math.round(last / 1024));
    expect(last - first).toBeLessThan(1.5 * 2 ** 20);
    clock.resolve(from(service.close()).pipe(take(1)));
    // No timer of the client is left: time has nothing more to bring.
    expect(() => clock.resolve(NEVER)).toThrow(/nothing/);
  },
);
