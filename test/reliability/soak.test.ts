/**
 * A long time in one process: the heap stays flat, and after `close()` every handle, socket, timer and listener is gone. An hour in
 * virtual time, and some seconds of real time, which `npm run test:soak` makes ten minutes.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { defer, firstValueFrom, from, lastValueFrom, map, mergeMap, NEVER, of, range, take, timer } from 'rxjs';
import { afterAll, expect, it } from 'vitest';
import { ModelInput, ServiceClient } from '../../src/index.js';
import { batch, checkpointEvery, sampleFrom, train } from '../../src/operators/index.js';
import { fromIterable } from '../../src/sources/index.js';
import { json, refusal, VirtualClock } from '../../src/testing/index.js';
import type { Transport } from '../../src/transport/Transport.js';
import { datum, prompt } from '../marbles/client/stage.js';
import { Report } from './support/Report.js';
import { heapBytes, leaked, mean, resources } from './support/resources.js';

const LONG = process.env['TINKER_RX_SUITE'] === 'long';
const REAL_MS = LONG ? 10 * 60_000 : 4000;
const report = new Report('soak', ['requests sent', 'steps', 'samples', 'clients opened and closed', 'leaked handles']);
afterAll(() => report.print());

/** Means of the first and the last third, without the very first values, in which caches fill. */
function thirds(heaps: readonly number[]): { readonly first: number; readonly last: number } {
  const warm = heaps.slice(Math.ceil(heaps.length / 10));
  const third = Math.ceil(warm.length / 3);
  return { first: mean(warm.slice(0, third)), last: mean(warm.slice(-third)) };
}

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
      if (step % 20 === 0) heaps.push(heapBytes());
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

/** The embedded service in a process of its own: it remembers sessions, runs and checkpoints, as a service must. */
async function startService(): Promise<{ readonly baseUrl: string; readonly stop: () => Promise<void> }> {
  const script = fileURLToPath(new URL('support/serviceChild.ts', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return {
    baseUrl: line.toString().trim(),
    stop: async () => {
      const ended = once(child, 'close');
      child.stdin.end();
      await ended;
    },
  };
}

it(
  'real training, sampling, saving, cancelling and reconnecting leave nothing behind',
  { timeout: REAL_MS + 180_000 },
  async () => {
    const before = resources();
    const { baseUrl, stop } = await startService();
    const endsMs = performance.now() + REAL_MS;
    const heaps: number[] = [];
    const text = (words: string) => ModelInput.fromInts(Array.from(Buffer.from(words)));
    const data = () => [datum(20), datum(12)];
    while (performance.now() < endsMs) {
      const service = new ServiceClient({ baseUrl, apiKey: 'tml-soak', logLevel: 'silent' });
      const events = service.events$.subscribe();
      const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4 });
      for (let round = 0; round < 5; round++) {
        const steps = fromIterable(() => data().concat(data())).pipe(
          batch({ size: 2 }),
          checkpointEvery({ steps: 2, kind: 'sampler', ttlSeconds: 3600, name: () => `round-${round}` }),
          train(trainer, { loss: 'cross_entropy', adam: { learningRate: 1e-4 } }),
        );
        await lastValueFrom(steps);
        const sampler = await trainer.saveWeightsAndGetSamplingClient();
        const samples = range(0, 8).pipe(
          mergeMap((index) => [{ prompt: text(`prompt ${index}`) }]),
          sampleFrom(sampler, { samplingParams: { maxTokens: 8 } }),
        );
        await lastValueFrom(samples);
        // Left half way: what it started is cancelled.
        await firstValueFrom(samples);
        sampler.sample({ prompt: text('left alone'), samplingParams: { maxTokens: 200 } }).cancel();
        report.add('steps', 2);
        report.add('samples', 18);
      }
      await (report.get('clients opened and closed') % 5 === 4 ? service.destroy() : service.close());
      events.unsubscribe();
      report.add('clients opened and closed', 1);
      await firstValueFrom(timer(10));
      heaps.push(heapBytes());
    }
    await stop();
    const { first, last } = thirds(heaps);
    report.add('real time: heap of the first third, kB', Math.round(first / 1024));
    report.add('real time: heap of the last third, kB', Math.round(last / 1024));
    report.add('real time: resident at the end, MB', Math.round(process.memoryUsage().rss / 2 ** 20));
    if (LONG) expect(last - first).toBeLessThan(2 * 2 ** 20);
    // Sockets that were cut are closed by the system a little later.
    const left = await firstValueFrom(
      defer(() => timer(0, 100)).pipe(
        take(50),
        mergeMap((tries) => {
          const found = leaked(before, resources());
          return found.length === 0 || tries === 49 ? [found] : [];
        }),
      ),
    );
    report.add('leaked handles', left.length);
    expect(left).toStrictEqual([]);
  },
);
