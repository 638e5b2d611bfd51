import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createSecureServer, type ServerHttp2Session, type Settings } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';

export interface Hit {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly json: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}
/** Answers one request; nothing is added to what it does. */
export type Answer = (response: ServerResponse, hit: Hit, request: IncomingMessage) => void;

const pem = (name: string): Buffer => readFileSync(new URL(`./tls/${name}.pem`, import.meta.url));
/** What a server over TLS needs; its name is localhost. */
export const identity = () => ({ key: pem('key'), cert: pem('cert') });
/** What a client must trust to talk to a fake service over TLS. */
export const certificate = (): Buffer => pem('cert');

/** A real HTTP server on a free port that answers each path as told and remembers what it saw. */
export class FakeService {
  readonly hits: Hit[] = [];
  readonly sockets = new Set<Socket>();
  /** Sessions of HTTP/2 that are open. */
  readonly sessions = new Set<ServerHttp2Session>();
  #server: Server;
  opened = 0;

  private constructor(
    readonly answers: Record<string, Answer>,
    readonly scheme: 'http' | 'https',
    server: Server,
  ) {
    this.#server = server;
    // A request that ends in the middle is what many tests are about.
    server.on('request', (request, response) => void this.#answer(request, response).catch(() => {}));
    server.on(
      'session' as 'close',
      ((session: ServerHttp2Session) => {
        this.sessions.add(session);
        session.on('close', () => this.sessions.delete(session));
        session.on('error', () => {});
      }) as () => void,
    );
    this.#server.on('connection', (socket: Socket) => {
      this.opened++;
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
    });
  }

  static start(answers: Record<string, Answer>): Promise<FakeService> {
    return FakeService.#listen(new FakeService({ ...USUAL, ...answers }, 'http', createServer()));
  }

  /** The same over TLS and HTTP/2. */
  static startHttp2(
    answers: Record<string, Answer>,
    settings: Settings = {},
    { allowHTTP1 = true } = {},
  ): Promise<FakeService> {
    const server = createSecureServer({ ...identity(), settings, allowHTTP1 }) as unknown as Server;
    return FakeService.#listen(new FakeService({ ...USUAL, ...answers }, 'https', server));
  }

  /** The same over TLS, without HTTP/2. */
  static startHttps(answers: Record<string, Answer>): Promise<FakeService> {
    const server = createHttpsServer(identity());
    return FakeService.#listen(new FakeService({ ...USUAL, ...answers }, 'https', server));
  }

  static async #listen(fake: FakeService): Promise<FakeService> {
    await new Promise<void>((resolve) =>
      fake.#server.listen(0, fake.scheme === 'http' ? '127.0.0.1' : 'localhost', resolve),
    );
    return fake;
  }

  get url(): string {
    return `${this.scheme}://${this.scheme === 'http' ? '127.0.0.1' : 'localhost'}:${(this.#server.address() as AddressInfo).port}`;
  }

  onSession(does: (session: ServerHttp2Session) => void): void {
    this.#server.on('session' as 'close', does as () => void);
  }

  /** After TLS and before HTTP have had it. */
  onSecureConnection(does: (socket: Socket) => void): void {
    this.#server.prependListener('secureConnection', does);
  }

  hitsOf(path: string): Hit[] {
    return this.hits.filter((hit) => hit.path === path);
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const isJson = (request.headers['content-type'] ?? '').includes('json') && body.length > 0;
    const hit: Hit = {
      path: (request.url ?? '').replace('/api/v1/', ''),
      headers: request.headers,
      json: isJson ? (JSON.parse(body.toString()) as Record<string, unknown>) : {},
      body,
    };
    this.hits.push(hit);
    const answer = this.answers[hit.path] ?? reply({ detail: 'not found' }, 404);
    answer(response, hit, request);
  }
}

export const reply =
  (body: unknown, status = 200, headers: Record<string, string> = {}): Answer =>
  (response) => {
    const text = JSON.stringify(body);
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
  };
export const reset: Answer = (_, __, request) => request.socket.resetAndDestroy();
/** Promises more bytes than it sends, then hangs up. */
export const halfBody: Answer = (response, _, request) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
  response.write('{"request_id":', () => request.socket.destroy());
};
/** The answers one after the other; the last one again and again. */
export function inTurn(...answers: readonly Answer[]): Answer {
  let next = 0;
  return (...seen) => answers[Math.min(next++, answers.length - 1)]!(...seen);
}

const USUAL: Record<string, Answer> = {
  'client/config': reply({}),
  'client/dynamic_config': reply({}),
  create_session: reply({ session_id: 's' }),
  session_heartbeat: reply({}),
  telemetry: reply({ status: 'accepted' }),
  'sessions/s/finish': reply({}),
  create_model: reply({ request_id: 'create' }),
  create_sampling_session: reply({ sampling_session_id: 's:sample:0' }),
};
