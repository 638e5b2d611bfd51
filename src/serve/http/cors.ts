import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Lets a web page read the answer, and tells it before it asks that it may. Only for pages whose origin was allowed:
 * everyone else was refused before this.
 *
 * @returns whether the request was only the browser's question, which is answered then
 */
export function answerBrowser({ method, headers }: IncomingMessage, response: ServerResponse): boolean {
  const { origin } = headers;
  if (origin === undefined) return false;
  response.setHeader('access-control-allow-origin', origin);
  response.setHeader('vary', 'origin');
  response.setHeader('access-control-expose-headers', 'x-request-id, retry-after, x-gateway-warning');
  if (method !== 'OPTIONS') return false;
  response.setHeader('access-control-allow-methods', 'GET, POST');
  // Clients send headers that name their version, so whatever the browser asks for is allowed.
  response.setHeader('access-control-allow-headers', headers['access-control-request-headers'] ?? '*');
  response.setHeader('access-control-max-age', '600');
  response.writeHead(204).end();
  return true;
}
