import { isIP } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { BaseUrl } from './baseUrl.js';
import { TransportFailure } from './Transport.js';

export interface TlsOptions {
  /** Certificates to trust instead of the usual ones. Default: Node's, with those of `NODE_EXTRA_CA_CERTS`. */
  readonly ca?: string | Buffer;
}

export const CONNECT_TIMEOUT_MS = 10_000;

/** Opens a TLS connection that offers HTTP/2 and HTTP/1.1; its `alpnProtocol` says what the server has chosen. */
export function tlsConnect(
  { origin }: BaseUrl,
  options: TlsOptions,
  done: (error: unknown, socket?: TLSSocket) => void,
): void {
  const { hostname, port } = new URL(origin);
  const host = hostname.replace(/^\[|\]$/g, '');
  // Loaded when it is needed, which it is not for a server on this machine.
  const { connect } = process.getBuiltinModule('node:tls');
  const socket = connect({
    host,
    port: port === '' ? 443 : Number(port),
    ALPNProtocols: ['h2', 'http/1.1'],
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...options,
  });
  const over = (error: unknown, connected?: TLSSocket): void => {
    clearTimeout(timeout);
    socket.off('error', failed);
    done(error, connected);
  };
  const failed = (error: Error): void => {
    socket.destroy();
    over(error);
  };
  const timeout = setTimeout(
    () => failed(new TransportFailure('timeout', `no connection within ${CONNECT_TIMEOUT_MS / 1000} s`)),
    CONNECT_TIMEOUT_MS,
  );
  socket.setNoDelay(true);
  socket.setKeepAlive(true, 60_000);
  socket.once('error', failed);
  socket.once('secureConnect', () => over(undefined, socket));
}
