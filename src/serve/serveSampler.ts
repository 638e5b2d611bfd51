import { randomBytes } from 'node:crypto';
import type { Renderer } from '../chat/renderers/Renderer.js';
import type { SamplingClient } from '../client/SamplingClient.js';
import { systemUuid } from '../transport/system.js';
import { ValidationError } from '../wire/tinkerError.js';
import type { ChatModel } from './completion/ChatRequest.js';
import type { Gateway } from './http/Endpoint.js';
import { GatewayServer } from './http/GatewayServer.js';
import { ModelShelf, type SamplerSourceClient } from './models/ModelShelf.js';
import { routes } from './routes.js';

/** What {@link serveSampler} needs of a sampler. A `SamplingClient` is one. */
export type ServedSampler = Pick<SamplingClient, 'sample' | 'getRenderer' | 'getBaseModel'>;

/** Options of {@link serveSampler}. */
export interface ServeOptions {
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default `127.0.0.1`. Anything else opens the gateway to the network: the key is then all that protects it. */
  readonly host?: string;
  /** The key callers have to bring. Default: a random one, in the result. */
  readonly apiKey?: string;
  /** Names under which the gateway may be asked for and web pages may call it from. Default: loopback names only. */
  readonly allowedHosts?: readonly string[];
  /** The name of the model in answers and lists. Default: the base model's. */
  readonly modelName?: string;
  /** Writes and reads conversations. Default: the one recommended for the model. */
  readonly renderer?: Renderer;
  /** Opens checkpoints that callers name as `model`: `tinker://…/sampler_weights/…` or `run@step`. Default: none can be named. */
  readonly service?: SamplerSourceClient;
  /** Most checkpoints kept open. Default 4. */
  readonly maxModels?: number;
  /** Most tokens one request may sample. Default 16,384. */
  readonly maxTokens?: number;
  /** Most requests at once; more are refused with 429. Default 256. */
  readonly maxRequests?: number;
  /** Largest body of a request. Default 8 MiB. */
  readonly maxBodyBytes?: number;
  /** Streams in pieces of so many tokens, each a request of its own. Default: streams deliver the finished answer. */
  readonly pieceTokens?: number;
  /** How often an answer that does not fit its JSON schema is sampled again. Default 2. */
  readonly jsonRetries?: number;
}

/** A gateway that is listening. */
export interface ServedGateway {
  /** For OpenAI's clients: `baseURL`. Ends in `/v1`. */
  readonly baseURL: string;
  /** For Anthropic's clients, which add `/v1` themselves. */
  readonly url: string;
  readonly apiKey: string;
  readonly port: number;
  /** Stops listening and cancels what is in flight. Safe to repeat. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Serves a sampler over HTTP, in the shapes of OpenAI's chat completions, completions and responses and of Anthropic's
 * messages, so that any client of those APIs can talk to a model in training.
 *
 * ```ts
 * const gateway = await serveSampler(sampler);
 * const client = new OpenAI({ baseURL: gateway.baseURL, apiKey: gateway.apiKey });
 * ```
 * Listens on this machine only unless told otherwise, and always asks for a key. A field that it cannot honour is a 400
 * that names it. Rejects with the system's error when the port is taken.
 */
export async function serveSampler(sampler: ServedSampler, options: ServeOptions = {}): Promise<ServedGateway> {
  const {
    port = 0,
    host = '127.0.0.1',
    apiKey = `rx-${randomBytes(24).toString('base64url')}`,
    allowedHosts = [],
    renderer,
    maxModels = positive('maxModels', options.maxModels ?? 4),
    maxTokens = positive('maxTokens', options.maxTokens ?? 16_384),
    maxRequests = positive('maxRequests', options.maxRequests ?? 256),
    maxBodyBytes = positive('maxBodyBytes', options.maxBodyBytes ?? 8 * 1024 * 1024),
    jsonRetries = 2,
  } = options;
  if (apiKey.length < 8) throw new ValidationError('apiKey must have at least 8 characters');
  const mainName = options.modelName ?? (await sampler.getBaseModel());
  const open = async (): Promise<ChatModel> => ({
    sampler,
    renderer: renderer ?? (await sampler.getRenderer()),
    newId: systemUuid,
  });
  const main = { name: mainName, open };
  const shelf = new ModelShelf({ main, service: options.service, renderer, most: maxModels, newId: systemUuid });
  const gateway: Gateway = {
    find: (model) => shelf.find(model),
    mainName,
    maxTokens,
    pieceTokens: options.pieceTokens,
    jsonRetries,
    nowMs: () => Date.now(),
    newId: systemUuid,
    onReply: () => undefined,
  };
  const server = new GatewayServer({
    host,
    port,
    access: { apiKey, host, allowedHosts },
    maxBodyBytes,
    maxRequests,
    bodyTimeoutMs: 60_000,
    find: routes(gateway, shelf),
  });
  const address = await server.listen();
  const url = `http://${host.includes(':') ? `[${host}]` : host === '0.0.0.0' ? 'localhost' : host}:${address.port}`;
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => (closed ??= server.close());
  return { baseURL: `${url}/v1`, url, apiKey, port: address.port, close, [Symbol.asyncDispose]: close };
}

function positive(name: string, value: number): number {
  if (!(value > 0)) throw new ValidationError(`${name} must be > 0, got ${value}`);
  return value;
}
