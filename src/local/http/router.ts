import type { Reply } from './reply.js';
import type { RequestContext } from './requestContext.js';

export type Handle = (context: RequestContext) => Reply | Promise<Reply>;

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below `/api/v1/`; a segment that starts with a colon is a parameter. */
  readonly path: string;
  readonly handle: Handle;
}

export const get = (path: string, handle: Handle): Route => ({ method: 'GET', path, handle });
export const post = (path: string, handle: Handle): Route => ({ method: 'POST', path, handle });
export const put = (path: string, handle: Handle): Route => ({ method: 'PUT', path, handle });
export const del = (path: string, handle: Handle): Route => ({ method: 'DELETE', path, handle });

export interface Match {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/** Finds the route of a path by its segments; literal segments win over parameters by coming first in the list. */
export class Router {
  readonly #routes: readonly (readonly [route: Route, segments: readonly string[]])[];

  constructor(routes: readonly Route[]) {
    this.#routes = routes.map((route) => [route, route.path.split('/')]);
  }

  /** The match, `'method'` when only another method has this path, or undefined. */
  find(method: string, path: string): Match | 'method' | undefined {
    const parts = decodeSegments(path);
    if (parts === undefined) return undefined;
    let otherMethod = false;
    for (const [route, segments] of this.#routes) {
      const params = matchSegments(segments, parts);
      if (params === undefined) continue;
      if (route.method === method) return { route, params };
      otherMethod = true;
    }
    return otherMethod ? 'method' : undefined;
  }
}

function decodeSegments(path: string): readonly string[] | undefined {
  try {
    return path.split('/').map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

function matchSegments(
  segments: readonly string[],
  parts: readonly string[],
): Readonly<Record<string, string>> | undefined {
  if (segments.length !== parts.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    const part = parts[index]!;
    if (segment.startsWith(':')) params[segment.slice(1)] = part;
    else if (segment !== part) return undefined;
  }
  return params;
}
