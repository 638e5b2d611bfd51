import { randomBytes } from 'node:crypto';
import type { Renderer } from '../chat/renderers/core/Renderer.js';
import type { Policy } from '../rl/sampling/rollout.js';
import { ValidationError } from '../wire/tinkerError.js';
import type { GatewayKey } from './http/access.js';
import type { Gateway } from './http/Endpoint.js';
import { GatewayError } from './http/GatewayError.js';
import { GatewayServer, type Route } from './http/GatewayServer.js';
import type { AccessEntry, Metrics } from './http/Metrics.js';
import { recordSession, type RecordedSession, type Recorder } from './record/recordSession.js';
import { findRoute, refusalOf } from './routes.js';
import type { CallRecorder } from './traffic/CallRecorder.js';
import { recordRoute } from './traffic/recordRoute.js';

/** Where a gateway listens, who may call it and how much they may ask for. */
export interface GatewayOptions {
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default `127.0.0.1`. Anything else opens the gateway to the network: the key is then all that protects it. */
  readonly host?: string;
  /** The key callers have to bring. Default: a random one, in the result. */
  readonly apiKey?: string;
  /** More keys, each with separate limits. Default: none. */
  readonly keys?: readonly GatewayKey[];
  /** Names under which the gateway may be asked for and web pages may call it from. Default: loopback names only. */
  readonly allowedHosts?: readonly string[];
  /** Most requests at once; more are refused with 429. Default 256. */
  readonly maxRequests?: number;
  /** Largest body of a request, in bytes. Default 8 MiB. */
  readonly maxBodyBytes?: number;
  /** Most time for an answer, in milliseconds; then 504. Default 600,000: clients wait ten minutes as well. */
  readonly requestTimeoutMs?: number;
  /** Most time for a caller to read what was written, in milliseconds; then it is cut off. Default 30,000. */
  readonly writeTimeoutMs?: number;
  /** How often a quiet stream sends a comment that keeps it open, in milliseconds. Default 15,000. */
  readonly heartbeatMs?: number;
  /** Told of every request that has ended: an access log. Default: nobody is. */
  readonly onRequest?: (entry: AccessEntry) => void;
  /** Writes every call into a file, and takes ratings at `POST /feedback`. The gateway closes it. Default: nothing is written. */
  readonly record?: CallRecorder;
}

/** Options of `ServedGateway.close`. */
export interface CloseGatewayOptions {
  /** Most time for requests in flight to end, in milliseconds; then they are cancelled. Default 0. */
  readonly drainMs?: number;
}

/** A gateway that is listening. */
export interface ServedGateway {
  /** For OpenAI's clients: `baseURL`. Ends in `/v1`. */
  readonly baseURL: string;
  /** For Anthropic's clients, which add `/v1` themselves. */
  readonly url: string;
  /** The key that clients must send. */
  readonly apiKey: string;
  /** The port it listens on. */
  readonly port: number;
  /** Opens a separate address for one agent and records what is sampled through it. */
  record(policy: Pick<Policy<unknown>, 'sample'>, renderer: Renderer): RecordedSession;
  /** Stops listening and cancels what is in flight, or lets it end first. Safe to repeat; a second call ends the waiting. */
  close(options?: CloseGatewayOptions): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What a gateway is made of. */
export interface GatewayParts {
  readonly gateway: Gateway;
  /** The models that are listed. */
  readonly names: () => readonly string[];
  /** Finds the endpoint of a path. Default: those that sample. */
  readonly route?: (method: string, path: string, gateway: Gateway) => Route | undefined;
  readonly reachable: () => boolean;
  readonly options: GatewayOptions;
  /** Ends what belongs to the gateway, after its last request. */
  readonly close: () => Promise<void>;
}

const SESSION = /^\/s\/([^/]+)(\/.*)$/;
const BODY_TIMEOUT_MS = 60_000;

/** Listens for callers of `gateway` and of the sessions that are recorded. Rejects when the port is taken. */
export async function startGateway(
  parts: GatewayParts,
): Promise<{ readonly served: ServedGateway; readonly metrics: Metrics }> {
  const { gateway, names, options } = parts;
  const { port = 0, host = '127.0.0.1', allowedHosts = [], onRequest = () => undefined } = options;
  const { apiKey = `rx-${randomBytes(24).toString('base64url')}` } = options;
  const keys = namedKeys([{ key: apiKey, name: 'main' }, ...(options.keys ?? [])]);
  const { record: recorder } = options;
  recorder?.addSecrets(keys.map(({ key }) => key));
  const sessions = new Map<string, Recorder>();
  const gatewayOf = new Map(keys.map((key) => [key, limited(gateway, key)]));
  const server = new GatewayServer({
    host,
    port,
    access: { keys, host, allowedHosts },
    maxBodyBytes: positive('maxBodyBytes', options.maxBodyBytes ?? 8 * 1024 * 1024),
    maxRequests: positive('maxRequests', options.maxRequests ?? 256),
    bodyTimeoutMs: BODY_TIMEOUT_MS,
    timeoutMs: positive('requestTimeoutMs', options.requestTimeoutMs ?? 600_000),
    writeTimeoutMs: positive('writeTimeoutMs', options.writeTimeoutMs ?? 30_000),
    heartbeatMs: positive('heartbeatMs', options.heartbeatMs ?? 15_000),
    newId: gateway.newId,
    reachable: parts.reachable,
    onRequest,
    refusalOf,
    find: (method, path, key) => {
      const [, id = '', rest = ''] = SESSION.exec(path) ?? [];
      const session = sessions.get(id);
      if (session !== undefined) return findRoute(method, rest, session.gateway, names);
      const allowed = () => names().filter((name) => key.models?.includes(name) ?? true);
      const limitedGateway = gatewayOf.get(key)!;
      const find = parts.route ?? ((...asked) => findRoute(...asked, allowed));
      const route = find(method, path, limitedGateway);
      return recorder === undefined ? route : recordRoute(method, path, { route, gateway: limitedGateway, recorder });
    },
  });
  const address = await server.listen();
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  const url = `http://${name}:${address.port}`;
  let closed: Promise<void> | undefined;
  const close = ({ drainMs = 0 }: CloseGatewayOptions = {}): Promise<void> => {
    if (drainMs === 0) server.cancelAll();
    return (closed ??= server
      .close(drainMs)
      .then(parts.close)
      .finally(() => recorder?.close()));
  };

  const record: ServedGateway['record'] = (policy, renderer) => {
    const id = gateway.newId();
    const recorder = recordSession(policy, renderer, gateway);
    sessions.set(id, recorder);
    return {
      baseURL: `${url}/s/${id}/v1`,
      url: `${url}/s/${id}`,
      apiKey,
      turns: recorder.turns,
      turns$: recorder.turns$,
      get branches() {
        return recorder.conversation.branches;
      },
      get broken() {
        return recorder.conversation.broken;
      },
      close: () => {
        sessions.delete(id);
        recorder.close();
      },
    };
  };
  const dispose = () => close();
  const served = {
    baseURL: `${url}/v1`,
    url,
    apiKey,
    port: address.port,
    record,
    close,
    [Symbol.asyncDispose]: dispose,
  };
  return { served, metrics: server.metrics };
}

/** @throws ValidationError */
function namedKeys(keys: readonly GatewayKey[]): readonly GatewayKey[] {
  if (keys.some(({ key }) => key.length < 8)) throw new ValidationError('apiKey must have at least 8 characters');
  return keys.map((key, index) => ({ name: `key-${index}`, ...key }));
}

/** The gateway as the holder of a key sees it. */
function limited(gateway: Gateway, { models }: GatewayKey): Gateway {
  if (models === undefined) return gateway;
  return {
    ...gateway,
    find: (model) =>
      models.includes(model ?? gateway.mainName)
        ? gateway.find(model)
        : Promise.reject(new GatewayError(404, `this key may not use the model ${model ?? gateway.mainName}`, 'model')),
  };
}

/** @throws ValidationError */
export function positive(name: string, value: number): number {
  if (!(value > 0)) throw new ValidationError(`${name} must be > 0, got ${value}`);
  return value;
}
