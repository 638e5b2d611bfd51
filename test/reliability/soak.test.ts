/**
 * A long time in one process: the heap stays flat, and after `close()` every handle, socket, timer and listener is gone. Some seconds,
 * which `npm run test:soak` makes ten minutes.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { defer, firstValueFrom, lastValueFrom, mergeMap, range, take, timer } from 'rxjs';
import { afterAll, expect, it } from 'vitest';
import { ModelInput, ServiceClient } from '../../src/index.js';
import { batch, checkpointEvery, sampleFrom, train } from '../../src/operators/index.js';
import { fromIterable } from '../../src/sources/index.js';
import { datum } from '../marbles/client/stage.js';
import { Report } from './support/Report.js';
import { heapBytes, leaked, resources, thirds } from './support/resources.js';

const LONG = process.env['TINKER_RX_SUITE'] === 'long';
const REAL_MS = LONG ? 10 * 60_000 : 4000;
const report = new Report('soak', ['steps', 'samples', 'clients opened and closed', 'leaked handles']);
afterAll(() => report.print());

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
