import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { allowsName, bearerOf, hostName, sameSecret } from '../../support/http/access.js';
import { listenOn } from '../../support/http/listen.js';
import { readBody } from '../../support/http/readBody.js';
import { messageOf } from '../../support/messageOf.js';
import { rowsOfBody } from './rowsOfBody.js';

export interface RowServerOptions<T> {
  readonly host: string;
  readonly path: string;
  readonly key: string | undefined;
  readonly allowedHosts: readonly string[];
  readonly maxBodyBytes: number;
  readonly retryAfterSeconds: number;
  /** The row, or a throw that says what is wrong with it. */
  readonly check: (row: unknown) => T | Promise<T>;
  readonly isFull: () => boolean;
  /** Hands rows on. Calls `answer` once, with how many were handed on: fewer than all where the stream ended meanwhile. */
  readonly take: (rows: readonly T[], answer: (accepted: number) => void) => void;
}

/** Bodies that may arrive at once; further requests are told to come again. */
const MOST_ARRIVING = 64;
/** How long a body may take to arrive. */
const ARRIVAL_MS = 30_000;
/** How long a client whose request is refused may take to read the answer before its connection is cut. */
const GRACE_MS = 500;

/** An answer other than 202. */
class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly headers: Readonly<Record<string, string | number>> = {},
  ) {
    super(message);
  }
}

/** Takes rows by POST, and answers for each request what became of its rows. */
export class RowServer<T> {
  readonly #server: Server;
  /** Requests without an answer. */
  readonly #open = new Map<ServerResponse, IncomingMessage>();
  #arriving = 0;
  #closing = false;

  constructor(private readonly options: RowServerOptions<T>) {
    this.#server = createServer({ requestTimeout: ARRIVAL_MS, headersTimeout: ARRIVAL_MS }, (request, response) => {
      this.#open.set(response, request);
      response.once('close', () => this.#open.delete(response));
      this.#serve(request, response).catch((error: unknown) => this.#refuse(response, error));
    });
  }

  /** Resolves to the address that rows are posted to. */
  async listen(port: number): Promise<string> {
    const { host, path } = this.options;
    const { address, family, port: bound } = await listenOn(this.#server, port, host);
    return `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}${path}`;
  }

  /** Stops listening, and refuses what has no answer yet. */
  close(): void {
    this.#closing = true;
    this.#server.close();
    for (const response of this.#open.keys()) this.#refuse(response, this.#busy('the stream has ended'));
    setImmediate(() => this.#server.closeIdleConnections());
    setTimeout(() => this.#server.closeAllConnections(), GRACE_MS).unref();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#checkAccess(request);
    const { isFull, take, maxBodyBytes } = this.options;
    if (isFull() || this.#arriving >= MOST_ARRIVING) throw this.#busy();
    this.#arriving++;
    let rows: readonly T[];
    try {
      rows = await this.#checked(await readBody(request, maxBodyBytes, BODY_ERRORS));
    } finally {
      this.#arriving--;
    }
    // The body took its time: others may have filled the room.
    if (isFull()) throw this.#busy();
    if (!this.#open.has(response) || response.writableEnded) return;
    take(rows, (accepted) => {
      if (accepted === rows.length) this.#send(response, 202, { accepted });
      else this.#send(response, 503, { error: 'the stream has ended', accepted }, this.#busy().headers);
    });
  }

  /** @throws Refusal for a client that may not post here */
  #checkAccess({ headers, method, url = '' }: IncomingMessage): void {
    const { host, path, key, allowedHosts } = this.options;
    const allowed = (name: string) => allowsName(name, host, allowedHosts);
    if (!allowed(hostName(headers.host ?? ''))) throw new Refusal(403, 'this Host header is not allowed here');
    // A web page elsewhere can post to this machine without asking.
    const { origin } = headers;
    if (origin !== undefined && !allowed(URL.canParse(origin) ? new URL(origin).hostname : ''))
      throw new Refusal(403, 'this Origin is not allowed here');
    if (url.split('?', 1)[0] !== path) throw new Refusal(404, `rows are posted to ${path}`);
    if (method !== 'POST') throw new Refusal(405, 'rows are posted', { allow: 'POST' });
    if (key !== undefined && !sameSecret(bearerOf(headers.authorization) ?? '', key))
      throw new Refusal(401, 'the header Authorization: Bearer with the right key is needed');
  }

  async #checked(body: Buffer): Promise<readonly T[]> {
    const parsed = attempt(() => rowsOfBody(body));
    const rows: T[] = [];
    for (const [index, row] of parsed.entries()) {
      try {
        rows.push(await this.options.check(row));
      } catch (error) {
        throw new Refusal(400, `row ${index + 1}: ${messageOf(error)}`);
      }
    }
    return rows;
  }

  #busy(why = 'no room for rows at this moment'): Refusal {
    return new Refusal(503, why, { 'retry-after': this.options.retryAfterSeconds });
  }

  #refuse(response: ServerResponse, error: unknown): void {
    const { status, message, headers } = error instanceof Refusal ? error : new Refusal(500, 'internal error');
    this.#send(response, status, { error: message }, headers);
  }

  #send(response: ServerResponse, status: number, body: object, headers: Refusal['headers'] = {}): void {
    const request = this.#open.get(response);
    if (request === undefined || response.headersSent) return;
    // Node reads the rest of a body, so that the connection can be used again. A large one is not worth it.
    const isLarge =
      !request.complete && Number(request.headers['content-length'] ?? Infinity) > this.options.maxBodyBytes;
    if (isLarge) {
      request.resume();
      // A client that has gone away took its socket with it.
      const socket = request.socket as Socket | null;
      setTimeout(() => socket?.destroy(), GRACE_MS).unref();
    }
    if (isLarge || this.#closing) response.setHeader('connection', 'close');
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  }
}

const BODY_ERRORS = {
  tooLarge: (limitBytes: number) => new Refusal(413, `the body is larger than ${limitBytes} bytes`),
  incomplete: () => new Refusal(400, 'the body is not complete'),
};

function attempt<R>(parse: () => R): R {
  try {
    return parse();
  } catch (error) {
    throw new Refusal(400, messageOf(error));
  }
}
