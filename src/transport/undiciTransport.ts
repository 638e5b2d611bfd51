import { Observable } from 'rxjs';
import { EnvHttpProxyAgent, Pool, type Dispatcher } from 'undici';
import type { BaseUrl } from './baseUrl.js';
import { Deadlines } from './Deadlines.js';
import { Exchange, type ExchangeOptions } from './Exchange.js';
import { Http1Lane, PooledLane } from './http1.js';
import { Lanes, type Carrier } from './Lanes.js';
import { Negotiation } from './negotiation.js';
import { proxiesOf, type Proxies } from './proxies.js';
import { CONNECT_TIMEOUT_MS, type TlsOptions } from './tlsConnect.js';
import type { Lane, Transport, TransportRequest, TransportResponse } from './Transport.js';

export interface UndiciTransportOptions {
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

export interface UndiciTransport {
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
export function undiciTransport(options: UndiciTransportOptions): UndiciTransport {
  const { baseUrl, environment = process.env, tls = {} } = options;
  const proxies = proxiesOf(environment);
  const deadlines = new Deadlines();
  const mayBeHttp2 = proxies === undefined && baseUrl.origin.startsWith('https:');
  const protocol = mayBeHttp2 ? new Negotiation({ baseUrl, tls, onDowngrade: () => lanes.retireAll() }) : undefined;
  const limitOf = (lane: Lane): number | null => options.connections?.[lane] ?? DEFAULT_CONNECTIONS[lane] ?? null;
  const lanes = new Lanes((lane) =>
    protocol?.isHttp2 === true ? protocol.lane(limitOf(lane) ?? Infinity) : http1Lane(options, limitOf(lane), proxies),
  );

  const shared: ExchangeOptions = {
    deadlines,
    mostBytes: { ...DEFAULT_MOST_BYTES, ...options.mostBytes },
    onResponse: ({ lane }, { status, body }) => {
      // A 400 without a body comes from a proxy, not from the service; a new connection helps.
      if (status === 400 && body.length === 0) lanes.retire(lane);
    },
  };
  const carry = (exchange: Exchange): void => lanes.of(exchange.request.lane).send(exchange);

  const send = (request: TransportRequest): Observable<TransportResponse> =>
    new Observable((subscriber) => {
      const exchange = new Exchange(request, subscriber, shared);
      if (protocol === undefined || protocol.isKnown) carry(exchange);
      else protocol.ask(exchange, () => carry(exchange));
      return exchange;
    });

  const end = async (how: 'close' | 'destroy'): Promise<void> => {
    protocol?.stop();
    await lanes.end(how);
    deadlines.stop();
  };
  return {
    transport: Object.assign(send, { timesOut: true }),
    close: () => end('close'),
    destroy: () => end('destroy'),
  };
}

function http1Lane(options: UndiciTransportOptions, limit: number | null, proxies: Proxies | undefined): Carrier {
  const { baseUrl, tls, connectTimeoutMs: timeout = CONNECT_TIMEOUT_MS } = options;
  // Exchange has its own deadlines: undici's restart with every byte, and include the upload.
  const settings = { connect: { timeout, ...tls }, headersTimeout: 0, bodyTimeout: 0 } as const;
  if (proxies === undefined) return new PooledLane(baseUrl, limit ?? Infinity, settings);
  // By default undici waits five minutes for a proxy that accepts a connection and says nothing.
  const clientFactory = (proxy: URL, options: object): Dispatcher =>
    new Pool(proxy, { ...options, headersTimeout: timeout });
  const agent = new EnvHttpProxyAgent({ ...settings, connections: limit, ...proxies, clientFactory });
  return new Http1Lane(agent, baseUrl);
}
