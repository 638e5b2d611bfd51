import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A file as the hub stores it. */
export interface HubFile {
  readonly content: Buffer;
  /** Large files are named by SHA-256, small ones by git's SHA-1. */
  readonly isLarge?: boolean;
}

export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly authorization: string | undefined;
  readonly range: string | undefined;
  /** Resolves when the response is over, with whether it was sent to its end. */
  readonly finished: Promise<boolean>;
}

export type Intercept = (request: IncomingMessage, response: ServerResponse) => boolean;

export const COMMIT = '0123456789abcdef0123456789abcdef01234567';

export const etagOf = ({ content, isLarge = false }: HubFile): string =>
  isLarge
    ? createHash('sha256').update(content).digest('hex')
    : createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');

/**
 * A server that answers as huggingface.co does for files of one repository, `org/name`, at branch `main` and one commit. Hand-written after what
 * the Python library huggingface_hub expects of it.
 */
export class HubServer implements AsyncDisposable {
  readonly seen: Seen[] = [];
  /** Handles a request instead of the server when it returns true. */
  intercept: Intercept = () => false;
  readonly #server: Server;
  #url = '';

  private constructor(readonly files: Map<string, HubFile>) {
    this.#server = createServer((request, response) => this.#answer(request, response));
  }

  static async start(files: Readonly<Record<string, HubFile>>): Promise<HubServer> {
    const hub = new HubServer(new Map(Object.entries(files)));
    await new Promise<void>((resolve) => hub.#server.listen(0, '127.0.0.1', resolve));
    hub.#url = `http://127.0.0.1:${(hub.#server.address() as AddressInfo).port}`;
    return hub;
  }

  get url(): string {
    return this.#url;
  }

  requests(method: string): string[] {
    return this.seen.filter((seen) => seen.method === method).map(({ url }) => url);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { method = '', url = '', headers } = request;
    const finished = new Promise<boolean>((resolve) => response.on('close', () => resolve(response.writableFinished)));
    this.seen.push({ method, url, authorization: headers.authorization, range: headers.range, finished });
    if (this.intercept(request, response)) return;
    const [, revision, name = ''] = /^\/org\/name\/resolve\/([^/]+)\/(.+)$/.exec(url) ?? [];
    if (revision === undefined) return fail(response, 404, 'RepoNotFound');
    if (revision !== 'main' && revision !== COMMIT) return fail(response, 404, 'RevisionNotFound');
    const file = this.files.get(name);
    if (file === undefined) return fail(response, 404, 'EntryNotFound', { 'x-repo-commit': COMMIT });
    send(response, file, method, headers.range, { 'x-repo-commit': COMMIT });
  }
}

export function fail(
  response: ServerResponse,
  status: number,
  code: string,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'x-error-code': code, ...headers }).end();
}

export function send(
  response: ServerResponse,
  file: HubFile,
  method: string,
  range?: string,
  headers: Record<string, string> = {},
): void {
  const start = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0);
  const body = file.content.subarray(start);
  response.writeHead(start > 0 ? 206 : 200, { etag: `"${etagOf(file)}"`, 'content-length': body.length, ...headers });
  response.end(method === 'HEAD' ? undefined : body);
}
