import type { ClientConfig, DynamicConfig } from '../wire/index.js';
import type { Latency } from './controls/controls.js';
import type { FaultPlan } from './controls/faults.js';
import type { Quotas } from './controls/quota.js';
import type { EnginePort } from './enginePort.js';
import type { LoadProgress } from './engine/loadModel.js';
import type { SeenRequest, SeenResponse } from './http/seen.js';
import type { ModelSource } from './weights/openModel.js';

/** Options of `startLocalTinker`. */
export interface LocalTinkerOptions {
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default 127.0.0.1. Anything else opens the service to the network: the key is then all that protects it. */
  readonly host?: string;
  /** Default: a random key. Must start with `tml-`, as the SDKs insist. */
  readonly apiKey?: string;
  /** Folder for checkpoints and records. Default: a temporary one, removed by `close`. */
  readonly data?: string;
  /** `skyrl` behaves like the JSON-only SkyRL server. Default `tinker`. */
  readonly dialect?: 'tinker' | 'skyrl';
  /** Length of a lock-step cycle, in milliseconds. Default 0: work runs as soon as it arrives. `Infinity`: cycles start by `controls.step()`. */
  readonly clockMs?: number;
  /** Default 0. */
  readonly latencyMs?: Latency;
  /** Which requests fail, and how. Default: none. */
  readonly faults?: FaultPlan;
  /** How much work is accepted at once. Default: no limit. */
  readonly quotas?: Quotas;
  /** Flags that client/config answers. */
  readonly flags?: Partial<ClientConfig>;
  /** Flags that client/dynamic_config answers. */
  readonly dynamicFlags?: Partial<DynamicConfig>;
  /** How long retrieve_future holds a poll. Default 30,000 (`skyrl`: 300,000). */
  readonly pollHoldMs?: number;
  /** How long retrieve_futures holds a poll. Default 30,000. */
  readonly sessionPollHoldMs?: number;
  /** How a poll says "not yet": HTTP 408, or 200 with `type: "try_again"`. Default `status`. */
  readonly tryAgainAs?: 'status' | 'body';
  /** Results from this size on are announced with complete_metadata if the client allows it. Default 65,536. */
  readonly metadataOnlyBytes?: number;
  /** How long a finished result is kept. Default 600,000. */
  readonly futureTtlMs?: number;
  /** Finished results kept in memory at most; the oldest are forgotten first. Default 268,435,456. */
  readonly maxResultBytes?: number;
  /** A session is over after this long without a heartbeat or other request. Default 3,600,000; 0 is never. */
  readonly sessionTtlMs?: number;
  /** Larger request bodies are refused with 413. Default 67,108,864. */
  readonly maxRequestBytes?: number;
  /** A request that has not arrived as a whole after this long is cut with 408. Default 120,000; 0 is never. */
  readonly requestTimeoutMs?: number;
  /** How long signed file URLs are good for. Default 3,600,000. */
  readonly urlTtlMs?: number;
  /** Lifetime of the tokens that auth/token gives. Default 3,600,000. */
  readonly jwtTtlMs?: number;
  /** Samplers kept in memory; others are loaded again when used. Default 16. */
  readonly maxResidentSamplers?: number;
  /**
   * Samplers made without a name whose weights are kept on disk; beyond that the least recently used are dropped, so that saving after
   * every step does not fill the disk. Samplers with a name are always kept. Default 32.
   */
  readonly maxUnnamedSamplers?: number;
  /**
   * Logprobs of sampled tokens at a temperature other than 1: `raw` are those of the model itself, `scaled` those at the temperature, the same at 0 and
   * 1. Servers differ. Default `raw`.
   */
  readonly sampledLogprobs?: 'raw' | 'scaled';
  /** Refuses a sample whose prompt and `max_tokens` do not fit the context. Default false: it ends where the context does. */
  readonly refuseOverflow?: boolean;
  /** Refuses a loss input that the named loss does not read. Default false: it is ignored. */
  readonly refuseUnknownInputs?: boolean;
  /** Called for each authenticated request before it is carried out. */
  readonly onRequest?: (request: SeenRequest) => void;
  /** Called when an answer is written or the connection was cut. */
  readonly onResponse?: (response: SeenResponse) => void;
  /**
   * Language models to load beside the byte models, of Llama's, Qwen2's and Qwen3's architectures: folders as Hugging Face lays them out,
   * `.gguf` files, or repositories of the Hugging Face hub, which are downloaded into its cache once. Default: none.
   */
  readonly models?: readonly (string | ModelSource)[];
  /** Threads that compute. Results do not depend on it. Default 1, or with `models` as many as there are cores, up to 8. */
  readonly threads?: number;
  /** The most memory for weights and work, in bytes. Default 2 GiB, or with `models` 4 GiB, which is also the most. */
  readonly memoryBytes?: number;
  /** Called for each tensor of `models` that was loaded. */
  readonly onLoading?: (progress: LoadProgress) => void;
  /** Instead of the engine that is started otherwise; not closed by `close`. */
  readonly engine?: EnginePort;
}

type Optional = 'data' | 'onRequest' | 'onResponse' | 'engine' | 'apiKey' | 'threads' | 'memoryBytes' | 'onLoading';
export type ResolvedOptions = Required<Omit<LocalTinkerOptions, Optional>> & Pick<LocalTinkerOptions, Optional>;

/** Fills in the defaults. @throws RangeError naming the option that is out of range. */
export function resolveOptions(options: LocalTinkerOptions): ResolvedOptions {
  const { dialect = 'tinker', apiKey } = options;
  const resolved: ResolvedOptions = {
    port: 0,
    host: '127.0.0.1',
    dialect,
    clockMs: 0,
    latencyMs: 0,
    faults: { rules: [] },
    quotas: {},
    flags: {},
    dynamicFlags: {},
    pollHoldMs: dialect === 'skyrl' ? 300_000 : 30_000,
    sessionPollHoldMs: 30_000,
    tryAgainAs: 'status',
    metadataOnlyBytes: dialect === 'skyrl' ? Infinity : 65_536,
    futureTtlMs: 600_000,
    maxResultBytes: 256 * 1024 * 1024,
    sessionTtlMs: 3_600_000,
    maxRequestBytes: 64 * 1024 * 1024,
    requestTimeoutMs: 120_000,
    urlTtlMs: 3_600_000,
    jwtTtlMs: 3_600_000,
    maxResidentSamplers: 16,
    maxUnnamedSamplers: 32,
    sampledLogprobs: 'raw',
    refuseOverflow: false,
    refuseUnknownInputs: false,
    models: [],
    ...withoutUndefined(options),
  };
  if (apiKey !== undefined && !/^tml-[\x21-\x7e]{1,200}$/.test(apiKey)) {
    throw new RangeError("apiKey must be 'tml-' and 1 to 200 printable characters without spaces");
  }
  if (!['raw', 'scaled'].includes(resolved.sampledLogprobs))
    throw new RangeError(`sampledLogprobs must be 'raw' or 'scaled', got ${String(resolved.sampledLogprobs)}`);
  if (resolved.engine !== undefined && resolved.models.length > 0)
    throw new RangeError('models are loaded by the engine that is started here: give models or engine, not both');
  for (const key of NOT_NEGATIVE) {
    if (!(resolved[key] >= 0)) throw new RangeError(`${key} must be ≥ 0, got ${resolved[key]}`);
  }
  return resolved;
}

const NOT_NEGATIVE = [
  'port',
  'clockMs',
  'pollHoldMs',
  'sessionPollHoldMs',
  'metadataOnlyBytes',
  'futureTtlMs',
  'maxResultBytes',
  'sessionTtlMs',
  'maxRequestBytes',
  'requestTimeoutMs',
  'urlTtlMs',
  'jwtTtlMs',
  'maxResidentSamplers',
  'maxUnnamedSamplers',
] as const;

const withoutUndefined = (options: LocalTinkerOptions): Partial<LocalTinkerOptions> =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
