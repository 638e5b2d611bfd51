import { EnvHttpProxyAgent } from 'undici';
import { resolveBaseUrl } from '../../transport/baseUrl.js';
import { ValidationError } from '../../wire/tinkerError.js';
import { bareGateway } from '../bareGateway.js';
import type { ChatModel } from '../completion/ChatRequest.js';
import { refusalOf } from '../routes.js';
import { startGateway, type GatewayOptions, type ServedGateway } from '../startGateway.js';
import type { CallRecorder } from './CallRecorder.js';
import { forward, type Upstream } from './forward.js';

/** Options of `serveUpstream`. */
export interface UpstreamOptions extends GatewayOptions {
  /**
   * Where calls are sent on: the base URL of a service that speaks OpenAI's or Anthropic's API, as their clients take it, or `hosted` for the
   * endpoints of the Tinker service at `TINKER_BASE_URL`. `/v1` is added where the URL has no path; a query is kept.
   */
  readonly upstream: string;
  /** The key for the upstream. Default: none is sent. */
  readonly upstreamKey?: string;
  /** Takes the place of the model that callers name, such as a `tinker://` path. Default: the caller's own. */
  readonly modelName?: string;
}

/** The addresses of the Tinker service for OpenAI's and Anthropic's clients. */
export interface HostedEndpoints {
  /** `baseURL` of OpenAI's clients. Ends in `/v1`. */
  readonly openai: string;
  /** `baseURL` of Anthropic's clients, which add `/v1/messages`. */
  readonly anthropic: string;
}

/**
 * Where the hosted service answers OpenAI's and Anthropic's clients, by its documentation; not run against the service. Default base URL:
 * `TINKER_BASE_URL`, else the hosted service.
 */
export function hostedEndpoints(baseUrl?: string): HostedEndpoints {
  const { href } = resolveBaseUrl(baseUrl, process.env['TINKER_BASE_URL']);
  return { openai: `${href}/oai/api/v1`, anthropic: `${href}/anthropic/api` };
}

const PATHS =
  /^\/v1\/(?:chat\/completions|completions|responses|messages|messages\/count_tokens|embeddings|models(?:\/.*)?)$/;

/**
 * Passes the calls of OpenAI's and Anthropic's clients on to another service as they are, streams included, and records them.
 *
 * ```ts
 * const gateway = await serveUpstream({
 *   upstream: 'https://api.openai.com/v1',
 *   upstreamKey: process.env['OPENAI_API_KEY']!,
 *   record: recordCalls('calls.jsonl'),
 * });
 * ```
 * Callers bring the gateway's own key; the upstream's never leaves this process except to the upstream. Status and body of a reply are the
 * upstream's. A caller that hangs up ends its call there.
 */
export async function serveUpstream(options: UpstreamOptions): Promise<ServedGateway> {
  const { upstream, upstreamKey: key, modelName: model, record } = options;
  if (upstream !== 'hosted' && !URL.canParse(upstream))
    throw new ValidationError(`upstream must be a URL or 'hosted', got '${upstream}'`);
  if (upstream !== 'hosted') checkUrl(new URL(upstream), record);
  if (key !== undefined) record?.addSecrets([key]);
  const bases = upstream === 'hosted' ? hostedEndpoints() : { openai: upstream, anthropic: upstream };
  // The gateway has the deadline, `requestTimeoutMs`.
  const dispatcher = new EnvHttpProxyAgent({ headersTimeout: 0, bodyTimeout: 0 });
  const target: Upstream = { ...bases, key, model, dispatcher };
  const { gateway, close } = bareGateway({
    // The upstream knows its models; only the limits of a key are checked here.
    find: () => Promise.resolve({} as ChatModel),
    mainName: model ?? 'upstream',
    maxTokens: Infinity,
  });
  const { served } = await startGateway({
    gateway,
    names: () => [],
    route: (method, path, limited) =>
      PATHS.test(path)
        ? {
            name: path.replace(/^\/v1\/models\/.*/, '/v1/models/{model}'),
            endpoint: forward(method, path, target),
            gateway: limited,
            refusal: refusalOf(path),
          }
        : undefined,
    reachable: () => true,
    options,
    close: async () => {
      await close();
      await dispatcher.destroy();
    },
  });
  return served;
}

/** @throws ValidationError for a URL that holds a password, which `fetch` would tell in its errors */
function checkUrl({ username, password, searchParams }: URL, record: CallRecorder | undefined): void {
  if (username !== '' || password !== '')
    throw new ValidationError('upstream must not have a user or password: give the key as upstreamKey');
  record?.addSecrets([...searchParams.values()].filter((value) => value.length >= 8));
}
