/**
 * Run by stoppedServer.test.ts in a process of its own: a client that ends while its server is stopped. Arguments: what to do, the
 * server's URL. It says `ready` on stdout, waits for a line on stdin, by which the server is stopped, and says `ended` when it has ended.
 * Then nothing may keep the process alive.
 */
import { ModelInput, ServiceClient } from '../../src/index.js';
import { resolveBaseUrl } from '../../src/transport/baseUrl.js';
import { socketTransport, type SocketTransport } from '../../src/transport/socketTransport.js';
import type { TransportFailure, TransportResponse } from '../../src/transport/Transport.js';
import { hurry } from './support/hurry.js';

const [, , what = '', baseUrl = ''] = process.argv;
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const stopped = (): Promise<void> =>
  new Promise((resolve) => {
    process.stdin.once('data', () => {
      process.stdin.destroy();
      resolve();
    });
    say('ready');
  });

const open = (): SocketTransport => socketTransport({ baseUrl: resolveBaseUrl(baseUrl, undefined), environment: {} });
/** How a request ends: the status of its answer, or the kind of its failure. */
const ask = (sockets: SocketTransport, path: string): Promise<string> =>
  new Promise((resolve) => {
    sockets
      .transport({ method: 'POST', path: `/api/v1/${path}`, lane: 'polls', headers: {}, body: '{}', timeoutMs: 1e9 })
      .subscribe({
        next: ({ status }: TransportResponse) => resolve(`answered ${status}`),
        error: ({ kind }: TransportFailure) => resolve(`failed: ${kind}`),
      });
  });
const three = <A>(make: () => A): A[] => [make(), make(), make()];

/** Requests that are in flight when the server stops, and some that are made after that. */
async function waiting(sockets: SocketTransport): Promise<Promise<string>[]> {
  await ask(sockets, 'x');
  const before = three(() => ask(sockets, 'held'));
  await ask(sockets, 'x');
  await stopped();
  return [...before, ...three(() => ask(sockets, 'x'))];
}

const service = (): ServiceClient =>
  new ServiceClient({ baseUrl, apiKey: 'tml-x', telemetry: true, logLevel: 'silent', scheduler: hurry(50) });

const PROGRAMS: Record<string, () => Promise<unknown>> = {
  'transport.destroy': async () => {
    const sockets = open();
    const pending = await waiting(sockets);
    await sockets.destroy();
    return Promise.all(pending);
  },
  'transport.close': async () => {
    const sockets = open();
    const pending = await waiting(sockets);
    await sockets.close();
    return Promise.all(pending);
  },
  'transport.destroy before the first answer': async () => {
    const sockets = open();
    await stopped();
    const pending = three(() => ask(sockets, 'x'));
    await new Promise((resolve) => setTimeout(resolve, 50));
    await sockets.destroy();
    return Promise.all(pending);
  },
  'transport.destroy with a connection that carried a 503': async () => {
    const sockets = open();
    await ask(sockets, 'x');
    const cancelled = sockets
      .transport({ method: 'POST', path: '/api/v1/held', lane: 'polls', headers: {}, body: '{}', timeoutMs: 1e9 })
      .subscribe();
    await ask(sockets, 'fails');
    await stopped();
    cancelled.unsubscribe();
    await new Promise((resolve) => setTimeout(resolve, 50));
    await sockets.destroy();
  },
  'client.destroy': async () => {
    const client = service();
    const sampler = await client.createSamplingClient({ baseModel: 'm' });
    const samples = three(() =>
      sampler.sample({ prompt: ModelInput.fromInts([1]), samplingParams: { maxTokens: 1 } }).either(),
    );
    const training = await client.createLoraTrainingClient({ baseModel: 'm' });
    await stopped();
    const steps = three(() => training.optimStep().either());
    await client.destroy();
    return (await Promise.all([...samples, ...steps])).map((outcome) =>
      outcome._tag === 'Left' ? outcome.left.code : 'answered',
    );
  },
  'client.close': async () => {
    const client = service();
    await client.createLoraTrainingClient({ baseModel: 'm' });
    await stopped();
    await client.close();
  },
};
const outcome = await PROGRAMS[what]!();
if (outcome !== undefined) say(JSON.stringify(outcome));
say('ended');
