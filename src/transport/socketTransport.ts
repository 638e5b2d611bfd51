import { concatMap, defer, map, merge, of, share, Subject, take, tap, type Observable } from 'rxjs';
import { EnvHttpProxyAgent, Pool, type Dispatcher } from 'undici';
import type { TLSSocket } from 'node:tls';
import { ValidationError } from '../wire/tinkerError.js';
import type { BaseUrl } from './baseUrl.js';
import { FetchLane } from './fetchLane.js';
import { Http1Lane } from './http1.js';
import { CONNECT_TIMEOUT_MS, connectTls, Http2Lane, type TlsOptions } from './http2.js';
import type { LanePool } from './LanePool.js';
import { proxiesOf, type Proxies } from './proxies.js';
import { TransportFailure, type Lane, type Transport } from './Transport.js';

export interface SocketTransportOptions {
  readonly baseUrl: BaseUrl;
  /** Most connections of each lane. Default: no limit for polls, which over HTTP/1.1 each hold one; 128 or fewer for the others. */
  readonly connections?: Partial<Readonly<Record<Lane, number>>>;
  /** Default: `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` are respected when set. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Maximum bytes of a successful answer, by lane. Default: 512 MiB for results, which are polled; less for the others. */
  readonly mostBytes?: Partial<Readonly<Record<Lane, number>>>;
  readonly tls?: TlsOptions;
  /** How long a connection may take, and a proxy's answer to it. Default 10,000. */
  readonly connectTimeoutMs?: number;
  /** An undici dispatcher that carries everything over HTTP/1.1, such as a MockAgent. Default: new connections. */
  readonly dispatcher?: Dispatcher;
}

export interface SocketTransport {
  readonly transport: Transport;
  /** Waits for what is in flight, five seconds at the most, then closes every connection. */
  close(): Promise<void>;
  /** Fails what is in flight and closes every connection. */
  destroy(): Promise<void>;
}

/** Most connections of a lane; null: no limit. */
const CONNECTIONS: Readonly<Record<Lane, number | null>> = {
  session: 8,
  training: 128,
  sampling: 128,
  polls: null,
  sessionPolls: null,
  telemetry: 2,
  rest: 32,
};
const MIB = 2 ** 20;
/** Results may be large, though not larger than a text can be; everything else is a few fields or a page of a list. */
const MOST_BYTES: Readonly<Record<Lane, number>> = {
  session: 16 * MIB,
  training: 16 * MIB,
  sampling: 16 * MIB,
  polls: 512 * MIB,
  sessionPolls: 64 * MIB,
  telemetry: MIB,
  rest: 64 * MIB,
};
/** By then nothing of the client is in flight; what is left is a server that has stopped answering. */
const CLOSE_MS = 5000;
/** Bun has its own module in the place of undici. */
const HAS_NO_UNDICI = 'bun' in process.versions;
/** A server that speaks HTTP/2 only ends the handshake of a client that offers HTTP/1.1 alone. */
const WANTS_HTTP2 = 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL';

/**
 * Real sockets, with separate connections for each lane, opened when the lane is first used: HTTP/2 where the server offers
 * it over TLS, HTTP/1.1 everywhere else and through a proxy.
 *
 * @throws ValidationError when a proxy variable is no URL, or a number of connections makes no sense.
 */
export function socketTransport(options: SocketTransportOptions): SocketTransport {
  const { baseUrl, environment = process.env, tls = {}, dispatcher } = options;
  checkConnections(options.connections ?? {});
  const connections = { ...CONNECTIONS, ...options.connections };
  const mostBytes = { ...MOST_BYTES, ...options.mostBytes };
  const proxies = proxiesOf(environment);
  const mayBeHttp2 = baseUrl.origin.startsWith('https:') && proxies === undefined && dispatcher === undefined;
  const pools = new Map<Lane, LanePool>();
  const retired = new Set<LanePool>();
  /** undefined until the first connection has told. */
  let isHttp2: boolean | undefined = mayBeHttp2 ? undefined : false;
  /** The connection that told; the first lane takes it over. */
  let firstSocket: TLSSocket | undefined;

  /** The server has changed the protocol: what is in flight finishes, and the next request asks anew. */
  const forgetProtocol = (): void => {
    isHttp2 = undefined;
    for (const [lane, pool] of pools) {
      pools.delete(lane);
      retired.add(pool);
      void pool.close().finally(() => retired.delete(pool));
    }
  };
  /** Errors when the transport is destroyed, and with it the requests that wait for a connection. */
  const destroyed = new Subject<TLSSocket>();
  const newSocket = merge(destroyed, connectTls(baseUrl, tls, options.connectTimeoutMs)).pipe(take(1));
  const protocolKnown = newSocket.pipe(
    map((socket) => {
      isHttp2 = socket.alpnProtocol === 'h2';
      if (isHttp2) firstSocket = socket.unref();
      else socket.destroy();
    }),
    // Not kept: a server that has changed is asked again.
    share(),
  );
  const http2Socket: Observable<TLSSocket> = defer(() => {
    const socket = firstSocket;
    firstSocket = undefined;
    return socket === undefined || socket.destroyed ? newSocket : of(socket.ref());
  }).pipe(
    tap((socket) => {
      if (socket.alpnProtocol === 'h2') return;
      socket.destroy();
      forgetProtocol();
      throw new TransportFailure('connection', 'the server no longer offers HTTP/2');
    }),
  );
  const open = (lane: Lane): LanePool => {
    const opened =
      isHttp2 === true
        ? new Http2Lane(http2Socket, baseUrl, connections[lane] ?? Infinity, mostBytes[lane])
        : HAS_NO_UNDICI && dispatcher === undefined
          ? new FetchLane(baseUrl, mostBytes[lane])
          : new Http1Lane(dispatcher ?? openPool(options, proxies, connections[lane]), baseUrl, mostBytes[lane]);
    pools.set(lane, opened);
    return opened;
  };
  const send: Transport = (request) => (pools.get(request.lane) ?? open(request.lane)).send(request);

  const sendOverTls: Transport = (request) =>
    (isHttp2 === undefined ? protocolKnown : of(undefined)).pipe(
      concatMap(() => send(request)),
      tap({
        error: ({ cause }: TransportFailure) => {
          if ((cause as { code?: unknown } | undefined)?.code === WANTS_HTTP2) forgetProtocol();
        },
      }),
    );

  const destroy = async (): Promise<void> => {
    destroyed.error(new TransportFailure('connection', 'the client is destroyed'));
    firstSocket?.destroy();
    const all = [...pools.values(), ...retired];
    pools.clear();
    // A dispatcher of the caller's is the caller's to close.
    if (dispatcher === undefined) await within(CLOSE_MS, Promise.all(all.map((pool) => pool.destroy())));
  };
  return {
    transport: mayBeHttp2 ? (request) => defer(() => (isHttp2 === true ? send : sendOverTls)(request)) : send,
    close: async () => {
      const all = [...pools.values(), ...retired];
      if (dispatcher === undefined) await within(CLOSE_MS, Promise.all(all.map((pool) => pool.close())));
      await destroy();
    },
    destroy,
  };
}

/** The client has its own time limits: undici's restart with every byte. */
function openPool(
  options: SocketTransportOptions,
  proxies: Proxies | undefined,
  connections: number | null,
): Dispatcher {
  const { baseUrl, tls, connectTimeoutMs = CONNECT_TIMEOUT_MS } = options;
  const connect = { timeout: connectTimeoutMs, ...tls };
  const settings = { connect, connections, headersTimeout: 0, bodyTimeout: 0 };
  if (proxies === undefined) return new Pool(baseUrl.origin, settings);
  // By default undici waits five minutes for a proxy that accepts a connection and says nothing.
  const clientFactory = (proxy: URL, own: object): Dispatcher =>
    new Pool(proxy, { ...own, headersTimeout: connectTimeoutMs });
  return new EnvHttpProxyAgent({ ...settings, ...proxies, clientFactory });
}

function checkConnections(connections: Readonly<Record<string, unknown>>): void {
  for (const [lane, count] of Object.entries(connections)) {
    if (!Object.hasOwn(CONNECTIONS, lane))
      throw new ValidationError(
        `connections.${lane} is not a lane: expected one of ${Object.keys(CONNECTIONS).join(', ')}`,
      );
    if (!(count === Infinity || (Number.isInteger(count) && (count as number) >= 1)))
      throw new ValidationError(`connections.${lane} must be an integer >= 1, got ${String(count)}`);
  }
}

/** The work, or the end of the time for it. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  await Promise.race([work.catch(() => undefined), late]);
  clearTimeout(timer);
}
