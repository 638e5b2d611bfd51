import { isLeft } from 'fp-ts/lib/Either.js';
import type { IncomingHttpHeaders } from 'node:http';
import type * as t from 'io-ts';
import { jsonShape } from '../../support/http/jsonShape.js';
import { describeErrors } from '../../wire/index.js';
import { HttpError } from './httpError.js';
import { JSON_TYPE, PROTOBUF_TYPE } from './reply.js';

/** One request as an endpoint sees it: authenticated, its body read. */
export class RequestContext {
  #json: { readonly value: unknown } | undefined;

  constructor(
    readonly method: string,
    /** The path below `/api/v1/`, without query. */
    readonly endpoint: string,
    readonly params: Readonly<Record<string, string>>,
    readonly query: URLSearchParams,
    readonly headers: IncomingHttpHeaders,
    readonly body: Buffer,
    /** Scheme and authority the client used, for links back to this server. */
    readonly origin: string,
    /** Aborts when the client goes away. */
    readonly signal: AbortSignal,
  ) {}

  /** The same request with the parameters of its path. */
  with(params: Readonly<Record<string, string>>): RequestContext {
    const { method, endpoint, query, headers, body, origin, signal } = this;
    return new RequestContext(method, endpoint, params, query, headers, body, origin, signal);
  }

  withBody(replaced: Buffer): RequestContext {
    const { method, endpoint, params, query, headers, origin, signal } = this;
    return new RequestContext(method, endpoint, params, query, headers, replaced, origin, signal);
  }

  header(name: string): string | undefined {
    const value = this.headers[name];
    return Array.isArray(value) ? value[0] : value;
  }

  param(name: string): string {
    return this.params[name]!;
  }

  get sendsProtobuf(): boolean {
    return (this.header('content-type') ?? JSON_TYPE).startsWith(PROTOBUF_TYPE);
  }

  get acceptsProtobuf(): boolean {
    return (this.header('accept') ?? '').includes(PROTOBUF_TYPE);
  }

  /** @throws HttpError 422 if the body is not JSON. */
  json(): unknown {
    if (this.#json === undefined) {
      if ((jsonShape(this.body, { depth: MAX_DEPTH })?.depth ?? 0) > MAX_DEPTH)
        throw new HttpError(422, `the JSON body is nested deeper than ${MAX_DEPTH} levels`);
      try {
        this.#json = { value: this.body.length === 0 ? {} : (JSON.parse(this.body.toString('utf8')) as unknown) };
      } catch {
        throw new HttpError(422, 'the body is not valid JSON');
      }
    }
    return this.#json.value;
  }

  /** The JSON body as `codec` reads it. @throws HttpError 422 naming every field that is wrong, never its value. */
  decode<A>(codec: t.Type<A, unknown>): A {
    const decoded = codec.decode(this.json());
    if (isLeft(decoded)) throw new HttpError(422, describeErrors(decoded.left));
    return decoded.right;
  }

  /** A query parameter that must be an integer ≥ `minimum`. @throws HttpError 422 if it is not. */
  integer(name: string, fallback: number, minimum = 0): number {
    const given = this.query.get(name);
    if (given === null) return fallback;
    const value = Number(given);
    if (!Number.isSafeInteger(value) || value < minimum) {
      throw new HttpError(422, `${name} must be an integer ≥ ${minimum}`);
    }
    return value;
  }
}

/** Deeper than any request is nested. */
const MAX_DEPTH = 128;
