import { catchError, concat, concatMap, defer, from, identity, type Observable, tap } from 'rxjs';
import { EnvHttpProxyAgent, fetch, type Response } from 'undici';
import { APIConnectionError, type APIStatusError } from '../../client/errors.js';
import { statusError } from '../../client/connection/failure.js';
import { Secrets } from '../../client/connection/Secrets.js';
import { messageOf } from '../../support/messageOf.js';
import type { ChatDelta, ChatRequest } from '../completion/ChatRequest.js';
import { HostedReader } from './HostedReader.js';
import { type HostedWishes, toAnthropic } from './toAnthropic.js';

/** A model behind Anthropic's API, such as the hosted service's. */
export interface HostedModel {
  /** Base of the API; `/v1/messages` is added. */
  readonly url: string;
  readonly apiKey: string;
  /** A base model, or a `tinker://` path of sampler weights. */
  readonly model: string;
}

/**
 * A reply as it is sampled, through Anthropic's API: text appears while the model writes. The ids of tokens are not told there.
 *
 * Errors are those of the client, by status. Unsubscribing ends the request.
 */
export function streamHosted(model: HostedModel, request: ChatRequest): Observable<ChatDelta> {
  return defer(() => {
    const abort = new AbortController();
    return from(openHosted(model, request, { signal: abort.signal })).pipe(
      concatMap(identity),
      tap({ unsubscribe: () => abort.abort() }),
    );
  });
}

/** The same, once the service has accepted the request: a refusal rejects. The stream can be subscribed to once. */
export async function openHosted(
  { url, apiKey, model }: HostedModel,
  request: ChatRequest,
  { signal, ...wishes }: HostedWishes & { readonly signal?: AbortSignal | undefined } = {},
): Promise<Observable<ChatDelta>> {
  const abort = new AbortController();
  const secrets = new Secrets();
  secrets.add(apiKey);
  const response = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    signal: signal === undefined ? abort.signal : AbortSignal.any([signal, abort.signal]),
    dispatcher: (connections ??= new EnvHttpProxyAgent()),
    // Followed, a redirect would take the key along.
    redirect: 'manual',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', 'x-api-key': apiKey },
    body: JSON.stringify(toAnthropic(request, model, wishes)),
  }).catch((error: unknown) => {
    throw signal?.aborted === true ? signal.reason : unanswered(error);
  });
  if (!response.ok) throw await refusalOf(response, secrets);
  const reader = new HostedReader(secrets);
  const decoder = new TextDecoder();
  return concat(
    from((response.body ?? []) as AsyncIterable<Uint8Array>).pipe(
      catchError((error: unknown) => {
        throw unanswered(error);
      }),
      concatMap((part) => reader.read(decoder.decode(part, { stream: true }))),
    ),
    defer(() => reader.end()),
  ).pipe(tap({ unsubscribe: () => abort.abort(), error: () => abort.abort() }));
}

/** Kept open between calls. Idle ones do not keep the process. */
let connections: EnvHttpProxyAgent | undefined;

const unanswered = (error: unknown): APIConnectionError =>
  new APIConnectionError(`POST /v1/messages: ${messageOf((error as { readonly cause?: unknown }).cause ?? error)}`, {
    cause: error,
    retryable: true,
  });

async function refusalOf(response: Response, secrets: Secrets): Promise<APIStatusError> {
  const body = new Uint8Array(await response.arrayBuffer());
  const headers = Object.fromEntries(response.headers.entries());
  const clean = secrets.redactResponse({ status: response.status, headers, body });
  return statusError(clean, 'POST /v1/messages', Date.now());
}
