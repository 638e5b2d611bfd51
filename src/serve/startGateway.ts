import { randomBytes } from 'node:crypto';
import type { Renderer } from '../chat/renderers/core/Renderer.js';
import type { Policy } from '../rl/sampling/rollout.js';
import { ValidationError } from '../wire/tinkerError.js';
import type { Gateway } from './http/Endpoint.js';
import { GatewayServer } from './http/GatewayServer.js';
import { recordSession, type RecordedSession, type Recorder } from './record/recordSession.js';
import { routes } from './routes.js';

/** Where a gateway listens, who may call it and how much they may ask for. */
export interface GatewayOptions {
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default `127.0.0.1`. Anything else opens the gateway to the network: the key is then all that protects it. */
  readonly host?: string;
  /** The key callers have to bring. Default: a random one, in the result. */
  readonly apiKey?: string;
  /** Names under which the gateway may be asked for and web pages may call it from. Default: loopback names only. */
  readonly allowedHosts?: readonly string[];
  /** Most requests at once; more are refused with 429. Default 256. */
  readonly maxRequests?: number;
  /** Largest body of a request, in bytes. Default 8 MiB. */
  readonly maxBodyBytes?: number;
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
  /** Stops listening and cancels what is in flight. Safe to repeat. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const SESSION = /^\/s\/([^/]+)(\/.*)$/;
const BODY_TIMEOUT_MS = 60_000;

/** Listens for callers of `gateway` and of the sessions that are recorded. Rejects when the port is taken. */
export async function startGateway(
  gateway: Gateway,
  names: () => readonly string[],
  options: GatewayOptions,
): Promise<ServedGateway> {
  const { port = 0, host = '127.0.0.1', allowedHosts = [] } = options;
  const { apiKey = `rx-${randomBytes(24).toString('base64url')}` } = options;
  if (apiKey.length < 8) throw new ValidationError('apiKey must have at least 8 characters');
  const sessions = new Map<string, Recorder>();
  const find = routes(names);
  const server = new GatewayServer({
    host,
    port,
    access: { apiKey, host, allowedHosts },
    maxBodyBytes: positive('maxBodyBytes', options.maxBodyBytes ?? 8 * 1024 * 1024),
    maxRequests: positive('maxRequests', options.maxRequests ?? 256),
    bodyTimeoutMs: BODY_TIMEOUT_MS,
    find: (method, path) => {
      const [, id = '', rest = ''] = SESSION.exec(path) ?? [];
      const session = sessions.get(id);
      if (session !== undefined) return find(method, rest, session.gateway);
      return find(method, path, gateway);
    },
  });
  const address = await server.listen();
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  const url = `http://${name}:${address.port}`;
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => (closed ??= server.close());

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
  return { baseURL: `${url}/v1`, url, apiKey, port: address.port, record, close, [Symbol.asyncDispose]: close };
}

/** @throws ValidationError */
export function positive(name: string, value: number): number {
  if (!(value > 0)) throw new ValidationError(`${name} must be > 0, got ${value}`);
  return value;
}
