import { createServer, type ServerResponse } from 'node:http';
import { close, listenOn } from '../../support/http/listen.js';
import { type AccessOptions, refusalOf } from './access.js';
import type { Feed } from './Feed.js';
import { readPage } from './page.js';

export interface ListenOptions {
  readonly port: number;
  readonly host: string;
  readonly access: AccessOptions;
  /** Answers for further pages; says whether the address was one of theirs. */
  readonly more?: (url: URL, response: ServerResponse) => boolean;
}

export interface Listening {
  readonly port: number;
  /** Ends every connection and stops listening. */
  close(): Promise<void>;
}

/** Only to make paths whole. */
const BASE = 'http://dashboard';
const PLAIN = {
  'content-type': 'text/plain; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};

/** Serves the page and its feed. Rejects with the system's error when the port is taken. */
export async function servePage(feed: Feed, { port, host, access, more }: ListenOptions): Promise<Listening> {
  const page = readPage();
  const refuse = (response: ServerResponse, status: number, why: string) => {
    response.writeHead(status, PLAIN).end(`${why}\n`);
  };
  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    if (!URL.canParse(path, BASE)) return refuse(response, 400, 'no such address');
    const url = new URL(path, BASE);
    const refusal = refusalOf(request, url, access);
    if (refusal !== undefined) return refuse(response, refusal.status, refusal.why);
    if (url.pathname === '/') {
      response.writeHead(200, page.headers).end(request.method === 'HEAD' ? undefined : page.html);
    } else if (url.pathname === '/events' && request.method === 'GET') {
      feed.handle(request, response);
    } else if (more?.(url, response) !== true) {
      refuse(response, 404, 'not found');
    }
  });
  const address = await listenOn(server, port, host);
  return { port: address.port, close: () => close(server) };
}
