import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { SchedulerLike } from 'rxjs';
import type { Dispatcher } from 'undici';
import type { HubEvent } from './HubEvent.js';

/** How files are fetched from the Hugging Face hub. Every default is the one of the Python library. */
export interface HubOptions {
  /** Branch, tag or commit. Default `main`, or the revision that the service pins for the repository. */
  readonly revision?: string;
  /** Base URL. Default `HF_ENDPOINT`, else https://huggingface.co. */
  readonly endpoint?: string;
  /** Folder of the cache. Default `HF_HUB_CACHE`, else `HF_HOME`/hub, else ~/.cache/huggingface/hub. */
  readonly cacheFolder?: string;
  /** Access token; `false` for none. Default `HF_TOKEN`, else the file that `hf auth login` writes. */
  readonly token?: string | false;
  /** Use the cache only. Default `HF_HUB_OFFLINE`. */
  readonly offline?: boolean;
  /** Called for every event of every file. */
  readonly onProgress?: (event: HubEvent) => void;
  /** Attempts after the first if the connection or the server fails. Default 4. */
  readonly retries?: number;
  /** Wait before the second attempt, doubled for each further one. Default 500. */
  readonly retryDelayMs?: number;
  /** Clock of those waits. Default real time. */
  readonly scheduler?: SchedulerLike;
  /** undici dispatcher, for a proxy or special certificates. Default undici's own. */
  readonly dispatcher?: Dispatcher;
  /** Where variables are read from. Default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

const TRUE = new Set(['1', 'ON', 'YES', 'TRUE']);
const ETAG_TIMEOUT_SECONDS = 10;
const DOWNLOAD_TIMEOUT_SECONDS = 10;

/** {@link HubOptions} with the environment applied. The token is private: it shows in no dump. */
export class HubSettings {
  readonly endpoint: string;
  readonly cacheFolder: string;
  readonly offline: boolean;
  readonly retries: number;
  readonly retryDelayMs: number;
  readonly scheduler: SchedulerLike | undefined;
  readonly dispatcher: Dispatcher | undefined;
  readonly headersTimeoutMs: number;
  readonly bodyTimeoutMs: number;
  readonly #token: string | undefined;
  /** Whether requests that would do without a token carry it. */
  readonly #isSent: boolean;

  constructor(options: HubOptions = {}) {
    const env = options.env ?? process.env;
    const isTrue = (name: string): boolean => TRUE.has(env[name]?.toUpperCase() ?? '');
    const seconds = (name: string, otherwise: number): number => Number(env[name]) || otherwise;
    const home = env['HF_HOME'] || join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'huggingface');
    this.endpoint = (options.endpoint ?? (env['HF_ENDPOINT'] || 'https://huggingface.co')).replace(/\/+$/, '');
    this.cacheFolder = options.cacheFolder ?? (env['HF_HUB_CACHE'] || join(home, 'hub'));
    this.offline = options.offline ?? (isTrue('HF_HUB_OFFLINE') || isTrue('TRANSFORMERS_OFFLINE'));
    this.retries = options.retries ?? 4;
    this.retryDelayMs = options.retryDelayMs ?? 500;
    this.scheduler = options.scheduler;
    this.dispatcher = options.dispatcher;
    this.headersTimeoutMs = seconds('HF_HUB_ETAG_TIMEOUT', ETAG_TIMEOUT_SECONDS) * 1000;
    this.bodyTimeoutMs = seconds('HF_HUB_DOWNLOAD_TIMEOUT', DOWNLOAD_TIMEOUT_SECONDS) * 1000;
    const stored = () => readToken(env['HF_TOKEN_PATH'] || join(home, 'token'));
    this.#token = options.token === false ? undefined : (options.token ?? (env['HF_TOKEN']?.trim() || stored()));
    this.#isSent = options.token !== undefined || !isTrue('HF_HUB_DISABLE_IMPLICIT_TOKEN');
  }

  /** The access token, if there is one. */
  get token(): string | undefined {
    return this.#token;
  }

  /** Headers for a URL: the token goes to the endpoint itself and to no other host, such as the storage it redirects to. */
  headersFor(url: string): Record<string, string> {
    const headers = { 'user-agent': 'tinker-rx', 'accept-encoding': 'identity' };
    const isOwn = new URL(url).origin === new URL(this.endpoint).origin;
    return this.#token !== undefined && this.#isSent && isOwn
      ? { ...headers, authorization: `Bearer ${this.#token}` }
      : headers;
  }
}

function readToken(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim() || undefined;
  } catch {
    return undefined;
  }
}
