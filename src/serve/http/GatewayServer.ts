import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Subscription } from 'rxjs';
import { close, listen } from '../../support/http/listen.js';
import { readBody } from '../../support/http/readBody.js';
import { checkAccess, type Access } from './access.js';
import type { Answer, Endpoint, Gateway } from './Endpoint.js';
import { GatewayError, toGatewayError } from './GatewayError.js';

/** An endpoint found for a path, with the gateway it works with (a recorded session has one of its own). */
export interface Route {
  readonly endpoint: Endpoint;
  readonly gateway: Gateway;
  /** The error as this API writes it. */
  readonly refusal: (error: GatewayError) => object;
}

export interface GatewayServerOptions {
  readonly host: string;
  readonly port: number;
  readonly access: Access;
  readonly maxBodyBytes: number;
  readonly maxRequests: number;
  /** Most time for a body to arrive. */
  readonly bodyTimeoutMs: number;
  readonly find: (method: string, path: string) => Route | undefined;
}

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8', 'x-content-type-options': 'nosniff' };
const EVENT_TYPE = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' };

/**
 * Carries requests to their endpoint and answers back. A caller that hangs up cancels what it asked for; one that reads
 * slowly holds up nobody else, and its own stream no longer than its buffer is full.
 */
export class GatewayServer {
  readonly #options: GatewayServerOptions;
  readonly #server: Server;
  #active = 0;

  constructor(options: GatewayServerOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.requestTimeout = options.bodyTimeoutMs;
    this.#server.headersTimeout = Math.min(options.bodyTimeoutMs, 60_000);
  }

  listen(): Promise<AddressInfo> {
    return listen(this.#server, this.#options.port, this.#options.host);
  }

  /** Stops listening and cuts every connection, which cancels what was asked for on it. */
  close(): Promise<void> {
    return close(this.#server);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let refusal = openAiRefusal;
    const fail = (thrown: unknown): void => {
      const error = toGatewayError(thrown);
      if (response.headersSent) {
        response.end(`event: error\ndata: ${JSON.stringify(refusal(error))}\n\n`);
        return;
      }
      if (response.destroyed) return;
      const closing = error.status === 413 || error.status === 408 ? { connection: 'close' } : {};
      response.writeHead(error.status, { ...JSON_TYPE, ...closing }).end(JSON.stringify(refusal(error)));
    };
    let counted = false;
    try {
      const path = pathOf(request.url);
      const route = this.#options.find(request.method ?? 'GET', path);
      if (route !== undefined) ({ refusal } = route);
      checkAccess(request, this.#options.access);
      if (route === undefined) throw new GatewayError(404, `there is no ${request.method ?? 'GET'} ${path} here`);
      if (this.#active >= this.#options.maxRequests) throw new GatewayError(429, 'too many requests at once');
      this.#active++;
      counted = true;
      const body = request.method === 'GET' ? undefined : await readJson(request, this.#options.maxBodyBytes);
      await answer(route, body, response, fail);
    } catch (error) {
      fail(error);
    } finally {
      if (counted) this.#active--;
    }
  }
}

/** Resolves when the answer is written or its caller is gone. */
function answer(
  { endpoint, gateway }: Route,
  body: unknown,
  response: ServerResponse,
  fail: (error: unknown) => void,
): Promise<void> {
  return new Promise((resolve) => {
    const work = new Subscription();
    const answered = (found: Answer): void => {
      if ('json' in found) {
        const body = Buffer.from(JSON.stringify(found.json));
        // Set one by one: spreading objects with such keys is slow.
        for (const name in JSON_TYPE) response.setHeader(name, JSON_TYPE[name as keyof typeof JSON_TYPE]);
        response.setHeader('content-length', body.length);
        response.end(body);
        return;
      }
      response.writeHead(200, EVENT_TYPE);
      response.flushHeaders();
      const events = { next: (text: string) => response.write(text), error: fail, complete: () => response.end() };
      work.add(found.events.subscribe(events));
    };
    response.on('close', () => {
      work.unsubscribe();
      resolve();
    });
    if (response.destroyed) resolve();
    else work.add(endpoint(body, gateway).subscribe({ next: answered, error: fail }));
  });
}

/** Nothing in it that a URL would write differently. */
const PLAIN_PATH = /^\/[\w/-]*$/;

function pathOf(url: string | undefined): string {
  if (url !== undefined && PLAIN_PATH.test(url) && !url.startsWith('//')) return url;
  if (url === undefined || !URL.canParse(url, 'http://gateway'))
    throw new GatewayError(400, 'this address cannot be read');
  return new URL(url, 'http://gateway').pathname;
}

async function readJson(request: IncomingMessage, limitBytes: number): Promise<unknown> {
  const body = await readBody(request, limitBytes, BODY_ERRORS);
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    throw new GatewayError(400, 'the body is not JSON');
  }
}

const BODY_ERRORS = {
  tooLarge: (limitBytes: number) => new GatewayError(413, `the body is larger than ${limitBytes} bytes`),
  incomplete: () => new GatewayError(400, 'the body is not complete'),
};

/** How OpenAI's API writes an error. */
export const openAiRefusal = ({ status, message, field }: GatewayError): object => ({
  error: {
    message,
    type: status === 401 ? 'authentication_error' : status < 500 ? 'invalid_request_error' : 'api_error',
    param: field ?? null,
    code: status === 404 && field === 'model' ? 'model_not_found' : null,
  },
});
