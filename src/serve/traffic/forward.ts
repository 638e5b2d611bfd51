import {
  catchError,
  concatMap,
  defer,
  finalize,
  from,
  map,
  type MonoTypeOperatorFunction,
  type Observable,
  pipe,
  tap,
  toArray,
} from 'rxjs';
import { type Dispatcher, fetch, type Response } from 'undici';
import { isRecord } from '../../support/isRecord.js';
import { messageOf } from '../../support/messageOf.js';
import type { Answer, Endpoint } from '../http/Endpoint.js';
import { GatewayError } from '../http/GatewayError.js';

/** Where calls are sent on, and with which key. */
export interface Upstream {
  /** Base of OpenAI's wire, as its clients take it. `/v1` is added to one without a path. */
  readonly openai: string;
  /** Base of Anthropic's wire, as its clients take it; a `/v1` at its end is left out. */
  readonly anthropic: string;
  readonly key: string | undefined;
  /** Takes the place of the model that callers name. Default: theirs. */
  readonly model: string | undefined;
  readonly dispatcher: Dispatcher;
}

const ANTHROPIC = '/v1/messages';
/** Headers of callers that change what the upstream does. Keys and cookies are not among them. */
const PASSED_ON = ['anthropic-version', 'anthropic-beta', 'openai-beta'];

/** The endpoint that sends a call on as it is, and its reply back as it comes. */
export function forward(method: string, path: string, upstream: Upstream): Endpoint {
  const isAnthropic = path.startsWith(ANTHROPIC);
  const url = addressOf(path, isAnthropic, upstream);
  return (body, gateway, { headers }) => {
    const abort = new AbortController();
    const { model = modelIn(body) } = upstream;
    const asked = upstream.model === undefined || !isRecord(body) ? body : { ...body, model };
    const passed = Object.fromEntries(
      PASSED_ON.flatMap((name) => (typeof headers[name] === 'string' ? [[name, headers[name]]] : [])),
    );
    const send = (): Promise<Response> =>
      fetch(url, {
        // Followed, a redirect would take the key along.
        ...{ method, signal: abort.signal, dispatcher: upstream.dispatcher, redirect: 'manual' },
        headers: { 'content-type': 'application/json', ...keyHeaders(upstream.key, isAnthropic), ...passed },
        ...(method === 'GET' ? {} : { body: JSON.stringify(asked) }),
      });
    // A key of this gateway may be limited to some models.
    return defer(() => (method === 'GET' ? Promise.resolve() : gateway.find(modelIn(body)))).pipe(
      concatMap(send),
      catchError((error: unknown) => {
        throw error instanceof GatewayError
          ? error
          : new GatewayError(502, `no answer of the upstream: ${reasonOf(error)}`);
      }),
      map((response) => answerOf(response, upstream.key, () => abort.abort())),
      tap({ unsubscribe: () => abort.abort() }),
    );
  };
}

function addressOf(path: string, isAnthropic: boolean, { openai, anthropic }: Upstream): URL {
  const url = new URL(isAnthropic ? anthropic : openai);
  const base = url.pathname.replace(/\/+$/, '');
  const isWhole = isAnthropic || base === '';
  url.pathname = isWhole ? `${base.replace(/\/v1$/, '')}${path}` : `${base}${path.replace(/^\/v1/, '')}`;
  return url;
}

const modelIn = (body: unknown): string | undefined =>
  isRecord(body) && typeof body['model'] === 'string' ? body['model'] : undefined;

/** `fetch failed` alone says nothing. */
const reasonOf = (error: unknown): string => messageOf((error as { readonly cause?: unknown }).cause ?? error);

const keyHeaders = (key: string | undefined, isAnthropic: boolean): Readonly<Record<string, string>> => {
  const version: Readonly<Record<string, string>> = isAnthropic ? { 'anthropic-version': '2023-06-01' } : {};
  if (key === undefined) return version;
  return isAnthropic ? { ...version, 'x-api-key': key } : { authorization: `Bearer ${key}` };
};

function answerOf({ status, headers, body }: Response, key: string | undefined, abort: () => void): Answer {
  const refuse = (reason: string): never => {
    abort();
    throw new GatewayError(502, reason);
  };
  if (status === 401 || status === 403) refuse('the upstream refused the key of this gateway');
  if (status >= 300 && status < 400) refuse('the upstream redirects: give the address that it redirects to');
  const bytes: Observable<Uint8Array> = from((body ?? []) as AsyncIterable<Uint8Array>);
  const retryAfter = headers.get('retry-after');
  return {
    status,
    contentType: headers.get('content-type') ?? 'application/octet-stream',
    ...(retryAfter === null ? {} : { retryAfter }),
    bytes: (status < 400 || key === undefined ? bytes : bytes.pipe(withoutKey(key))).pipe(finalize(abort)),
  };
}

/** Some services repeat the headers that they refuse. */
const withoutKey = (key: string): MonoTypeOperatorFunction<Uint8Array> =>
  pipe(
    toArray(),
    map((parts) => Buffer.from(Buffer.concat(parts).toString('utf8').replaceAll(key, '[redacted]'))),
  );
