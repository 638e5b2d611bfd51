import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastValueFrom, type SchedulerLike } from 'rxjs';
import { ServiceClient, type TinkerError } from '../../../src/index.js';
import { seededRandom } from '../../../src/support/random.js';
import { Engine } from '../../../src/local/engine/index.js';
import { LocalTinker, type FaultPlan, type LocalTinkerOptions } from '../../../src/local/index.js';
import { resolveBaseUrl } from '../../../src/transport/baseUrl.js';
import { socketTransport } from '../../../src/transport/socketTransport.js';
import { certificate } from '../../loopback/support/fakeService.js';
import { FaultyHttp2, type Http2Wound } from './FaultyHttp2.js';
import { FaultyProxy, type Wound } from './FaultyProxy.js';
import { Ledger } from './Ledger.js';
import type { Program } from './programs.js';

/** Weights of chances; they are scaled to the share of requests that is to be hurt. */
const WOUNDED: Readonly<Record<Wound, number>> = {
  reset: 4,
  'half request': 2,
  'answer lost': 5,
  'half answer': 3,
  stall: 0.2,
  delay: 2,
  drip: 2,
};
const WOUNDED_HTTP2: Readonly<Record<Http2Wound, number>> = {
  refused: 2,
  cancelled: 3,
  'cut answer': 3,
  'half answer': 2,
  'answer lost': 4,
  goaway: 2,
  stall: 0.2,
  delay: 2,
  drip: 2,
};
const STATUSES = [500, 502, 503, 429, 408] as const;
const POLL_HOLD_MS = 500;
/** By the clients' clock, which runs 25 times as fast: three times as long as the service holds a poll. */
const TIMEOUT_MS = 25 * 3 * POLL_HOLD_MS;
/** So much of the harm is done by the proxy, the rest by the service itself. */
const BY_PROXY = 0.6;

/** What the service does wrong by itself, to a share of the requests. */
function faultPlan(seed: number, share: number): FaultPlan {
  const statuses = STATUSES.map((status) => ({ type: 'status', status, retryAfterMs: 300 }) as const);
  const faults = [
    ...statuses,
    { type: 'reset', when: 'after' },
    { type: 'reset', when: 'before' },
    { type: 'truncate' },
    { type: 'delay', delayMs: 20 },
    { type: 'pause', forMs: 20, queueState: 'paused_capacity', reason: 'chaos' },
  ] as const;
  return { seed, rules: faults.map((fault) => ({ probability: share / faults.length, fault })) };
}

export type Protocol = 'HTTP/1.1' | 'HTTP/2';

export interface ChaosOptions {
  /** Default HTTP/1.1, without TLS. */
  readonly protocol?: Protocol;
  readonly seed: number;
  /** Share of the requests that are hurt, from 0 to 1. */
  readonly share: number;
  /** The clock and the timers of the clients. */
  readonly scheduler: SchedulerLike;
  /** The service is closed and started again when so many optimizer steps were asked for in all. */
  readonly restartAfterSteps?: readonly number[];
  /** What is counted as a step: another request, where a program has no optimizer steps. Default `optim_step`. */
  readonly stepEndpoint?: string;
}

export interface Outcome {
  readonly ledger: Ledger;
  /** What the program kept. */
  readonly kept: ReadonlyMap<string, string>;
  readonly requests: number;
  readonly harms: ReadonlyMap<string, number>;
  /** How often the program was run: once more for each restart. */
  readonly tries: number;
  /** What ended the tries that did not finish. */
  readonly errors: readonly TinkerError[];
}

/** Runs a program against the embedded service behind the proxy, again and again until it is done. */
export async function perform(program: Program, options: ChaosOptions): Promise<Outcome> {
  const { seed, share, scheduler, protocol, restartAfterSteps = [], stepEndpoint = 'optim_step' } = options;
  const folder = await mkdtemp(join(tmpdir(), 'tinker-rx-chaos-'));
  const ledger = new Ledger();
  const harms = new Map<string, number>();
  const count = (kind: string): void => void harms.set(kind, (harms.get(kind) ?? 0) + 1);
  const restarts = [...restartAfterSteps];
  let steps = 0;
  let restarting: Promise<void> = Promise.resolve();
  const settings: LocalTinkerOptions = {
    apiKey: 'tml-chaos',
    data: join(folder, 'data'),
    pollHoldMs: POLL_HOLD_MS,
    onRequest: ({ endpoint }) => {
      if (endpoint !== stepEndpoint || ++steps < (restarts[0] ?? Infinity)) return;
      restarts.shift();
      count('restart');
      restarting = restart();
    },
  };
  let engine: Engine | undefined;
  const start = async (): Promise<LocalTinker> => {
    engine = await Engine.start();
    const started = await LocalTinker.start({ ...settings, engine: ledger.watch(engine) });
    started.controls.faults = faultPlan(seed + steps, share * (1 - BY_PROXY));
    const { injector } = started.controls;
    const next = injector.next.bind(injector);
    injector.next = (method, endpoint) => {
      const fault = next(method, endpoint);
      if (fault !== undefined) count(fault.type === 'status' ? `status ${fault.status}` : `service ${fault.type}`);
      return fault;
    };
    return started;
  };
  let local = await start();
  const proxy =
    protocol === 'HTTP/2'
      ? await FaultyHttp2.start(local.url, { next: dice(WOUNDED_HTTP2, seed, share * BY_PROXY, count) })
      : await FaultyProxy.start(local.url, { next: dice(WOUNDED, seed, share * BY_PROXY, count) });
  const stop = async (): Promise<void> => {
    await local.close();
    await engine?.close();
  };
  const restart = async (): Promise<void> => {
    await stop();
    local = await start();
    proxy.target = local.url;
  };
  const kept = new Map<string, string>();
  const errors: TinkerError[] = [];
  try {
    for (let tries = 1; ; tries++) {
      const baseUrl = resolveBaseUrl(proxy.url, undefined);
      const sockets = socketTransport({ baseUrl, environment: {}, tls: { ca: certificate() } });
      const service = new ServiceClient({
        ...{ baseUrl: proxy.url, apiKey: 'tml-chaos', telemetry: false, logLevel: 'silent', scheduler },
        ...{ timeoutMs: TIMEOUT_MS, pollTimeoutMs: TIMEOUT_MS, transport: sockets.transport },
      });
      try {
        await lastValueFrom(program(service, join(folder, 'run'), kept), { defaultValue: undefined });
        await service.close();
        return { ledger, kept, requests: proxy.requests, harms, tries, errors };
      } catch (error) {
        await service.destroy();
        errors.push(error as TinkerError);
        if (tries > restartAfterSteps.length) throw error;
        await restarting;
      } finally {
        await sockets.destroy();
      }
    }
  } finally {
    await proxy.close();
    await restarting;
    await stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** The wounds of the requests that come, by a seed. */
function dice<W extends string>(
  weights: Readonly<Record<W, number>>,
  seed: number,
  share: number,
  count: (kind: string) => void,
): () => W | undefined {
  const random = seededRandom(seed);
  const entries = Object.entries(weights) as [W, number][];
  const whole = entries.reduce((sum, [, weight]) => sum + weight, 0);
  return () => {
    let roll = random();
    for (const [wound, weight] of entries) {
      roll -= (weight / whole) * share;
      if (roll < 0) {
        count(wound);
        return wound;
      }
    }
    return undefined;
  };
}
