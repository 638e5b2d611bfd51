/**
 * Run by blockedLoop.test.ts in a process of its own: blocks its event loop between two samples. Arguments: for how many milliseconds, the
 * service's URL, its key. Says on stdout what it heard and got, as JSON.
 */
import { ModelInput, ServiceClient, type TinkerEvent } from '../../src/index.js';

const [, , blockMs = '', baseUrl = '', apiKey = ''] = process.argv;
const service = new ServiceClient({ baseUrl, apiKey, telemetry: false, logLevel: 'silent' });
const events: TinkerEvent[] = [];
service.events$.subscribe((event) => void events.push(event));
const sampler = await service.createSamplingClient({ baseModel: 'tinker-rx/tiny' });
const sample = (): Promise<string> =>
  sampler.sample({ prompt: ModelInput.fromInts([104, 105]), samplingParams: { maxTokens: 2 } }).then(
    () => 'sampled',
    (error: unknown) => String(error),
  );

const before = await sample();
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(blockMs));
const after = await sample();
// The look that is late comes with the first timers after the block.
await new Promise((resolve) => setTimeout(resolve, 1500));
const blocked = events.flatMap((event) => (event.type === 'loop-blocked' ? [event.blockedMs] : []));
process.stdout.write(JSON.stringify({ before, after, blocked }));
await service.destroy();
