import { Observable } from 'rxjs';
import type { Client, Dispatcher } from 'undici';
import type { BaseUrl } from './baseUrl.js';
import { Deadlines } from './Deadlines.js';
import { Exchange, type ExchangeOptions } from './Exchange.js';
import { PlainConnection } from './http1/PlainConnection.js';
import { PooledLane } from './http1/PooledLane.js';
import { UndiciConnection, UndiciLane } from './http1/undici.js';
import { Lanes, type Carrier } from './Lanes.js';
import { LoadedLater } from './LoadedLater.js';
import { Negotiation } from './negotiation.js';
import { proxiesOf, type Proxies } from './proxies.js';
import { CONNECT_TIMEOUT_MS, type TlsOptions } from './tlsConnect.js';
import type { Lane, Transport, TransportRequest, TransportResponse } from './Transport.js';

export interface SocketTransportOptions {
  readonly baseUrl: BaseUrl;
  /** Most connections of each lane. Default: no limit for polls, which over HTTP/1.1 each hold one; 128 for the others. */
  readonly connections?: Partial<Readonly<Record<Lane, number>>>;
  /** Default: `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` are respected when set. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Most bytes of a successful answer, by lane. Default: 512 MiB for results, which are polled; less for the others. */
  readonly mostBytes?: Partial<Readonly<Record<Lane, number>>>;
  readonly tls?: TlsOptions;
  /** How long a connection may take, and a proxy's answer to it. Default 10,000. */
  readonly connectTimeoutMs?: number;
}

export interface SocketTransport {
  readonly transport: Transport;
  /** Waits for what is in flight, then closes every connection. */
  close(): Promise<void>;
  /** Fails what is in flight and closes every connection. */
  destroy(): Promise<void>;
}

const DEFAULT_CONNECTIONS: Partial<Record<Lane, number>> = {
  session: 8,
  training: 128,
  sampling: 128,
  telemetry: 2,
  rest: 32,
};
const MIB = 2 ** 20;
/** Most bytes that a plain connection reads at a time. */
const READ_BYTES = 256 * 1024;
/** Results may be large, though not larger than a text can be; everything else is a few fields or a page of a list. */
const DEFAULT_MOST_BYTES: Readonly<Record<Lane, number>> = {
  session: 16 * MIB,
  training: 16 * MIB,
  sampling: 16 * MIB,
  polls: 512 * MIB,
  sessionPolls: 64 * MIB,
  telemetry: MIB,
  rest: 64 * MIB,
};

/**
 * Real sockets, with connections of its own for each lane, made when the lane is first used: HTTP/2 where the server offers
 * it over TLS, HTTP/1.1 everywhere else, and through a proxy.
 *
 * @throws ValidationError when a proxy variable is no URL.
 */
export function socketTransport(options: SocketTransportOptions): SocketTransport {
  const { baseUrl, environment = process.env, tls = {} } = options;
  const proxies = proxiesOf(environment);
  const deadlines = new Deadlines();
  const mayBeHttp2 = proxies === undefined && baseUrl.origin.startsWith('https:');
  const protocol = mayBeHttp2 ? new Negotiation({ baseUrl, tls, onDowngrade: () => lanes.retireAll() }) : undefined;
  const limitOf = (lane: Lane): number | null => options.connections?.[lane] ?? DEFAULT_CONNECTIONS[lane] ?? null;
  const plain =
    proxies === undefined && baseUrl.origin.startsWith('http:') ? plainLanes(options, deadlines) : undefined;
  const loaded = new LoadedLater(() =>
    proxies === undefined ? loadLanes(options) : loadProxiedLanes(options, proxies),
  );

  const shared: ExchangeOptions = {
    deadlines,
    mostBytes: { ...DEFAULT_MOST_BYTES, ...options.mostBytes },
    onResponse: ({ lane }, { status, body }) => {
      // A 400 without a body comes from a proxy, not from the service; a new connection helps.
      if (status === 400 && body.length === 0) lanes.retire(lane);
    },
  };
  const lanes = new Lanes();
  const carry = (exchange: Exchange): void => {
    const { lane } = exchange.request;
    const over = (laneOf: MakeLane): void => lanes.of(lane, () => laneOf(limitOf(lane))).send(exchange);
    if (plain !== undefined) over(plain);
    else if (protocol?.isHttp2 === true) over((limit) => protocol.lane(limit ?? Infinity));
    else loaded.use(exchange, over);
  };

  const send = (request: TransportRequest): Observable<TransportResponse> =>
    new Observable((subscriber) => {
      const exchange = new Exchange(request, subscriber, shared);
      if (protocol === undefined || protocol.isKnown) carry(exchange);
      else protocol.ask(exchange, () => carry(exchange));
      return exchange;
    });

  const end = async (how: 'close' | 'destroy'): Promise<void> => {
    if (how === 'destroy') {
      protocol?.stop();
      loaded.destroy();
    } else await protocol?.settled();
    await loaded.settled();
    await lanes[how]();
    protocol?.stop();
    deadlines.stop();
  };
  return {
    transport: Object.assign(send, {
      timesOut: true,
      hasRoom: (lane: Lane, onRoom: () => void) => lanes.hasRoom(lane, onRoom),
    }),
    close: () => end('close'),
    destroy: () => end('destroy'),
  };
}

/** Makes a lane of so many connections at most. */
type MakeLane = (limit: number | null) => Carrier;

/** Exchange has its own deadlines: undici's restart with every byte, and include the upload. */
const settingsOf = ({ tls, connectTimeoutMs: timeout = CONNECT_TIMEOUT_MS }: SocketTransportOptions) =>
  ({ connect: { timeout, ...tls }, headersTimeout: 0, bodyTimeout: 0 }) as const;

/** Connections without TLS need nothing of undici. */
function plainLanes(options: SocketTransportOptions, deadlines: Deadlines): MakeLane {
  const { baseUrl, connectTimeoutMs = CONNECT_TIMEOUT_MS } = options;
  const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);
  const connection = () => new PlainConnection({ baseUrl, connectTimeoutMs, deadlines, readBuffer });
  return (limit) => new PooledLane(connection, limit ?? Infinity);
}

async function loadLanes(options: SocketTransportOptions): Promise<MakeLane> {
  const Connection = await loadClient();
  const { baseUrl } = options;
  const connection = () => new UndiciConnection(new Connection(baseUrl.origin, settingsOf(options)), baseUrl);
  return (limit) => new PooledLane(connection, limit ?? Infinity);
}

/** undici's client by itself: all of undici takes three times as long to load. Where a release has moved it, all of undici. */
async function loadClient(): Promise<typeof Client> {
  try {
    // @ts-expect-error undici has types for the whole of it only
    const { default: Part } = (await import('undici/lib/dispatcher/client.js')) as { default: typeof Client };
    return Part;
  } catch {
    return (await import('undici')).Client;
  }
}

async function loadProxiedLanes(options: SocketTransportOptions, proxies: Proxies): Promise<MakeLane> {
  const { EnvHttpProxyAgent, Pool } = await import('undici');
  const { baseUrl, connectTimeoutMs: headersTimeout = CONNECT_TIMEOUT_MS } = options;
  // By default undici waits five minutes for a proxy that accepts a connection and says nothing.
  const clientFactory = (proxy: URL, settings: object): Dispatcher => new Pool(proxy, { ...settings, headersTimeout });
  return (limit) => {
    const agent = new EnvHttpProxyAgent({ ...settingsOf(options), connections: limit, ...proxies, clientFactory });
    return new UndiciLane(agent, baseUrl);
  };
}
