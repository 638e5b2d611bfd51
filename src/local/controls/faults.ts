import { seededRandom } from '../../support/random.js';

/** What goes wrong. */
export type Fault =
  | {
      /** The request is answered with this status and not carried out. */
      readonly type: 'status';
      /** Answer with this HTTP status instead. */
      readonly status: number;
      /** The message in its body. Default `injected fault`. */
      readonly detail?: string;
      /** Sent instead of `{ detail }`; a string goes out as text/plain. */
      readonly body?: unknown;
      /** Seconds or an HTTP date, as it should stand in the header. */
      readonly retryAfter?: number | string;
      /** Milliseconds to wait, sent as the header `retry-after-ms`. Default: none. */
      readonly retryAfterMs?: number;
      /** Further headers of the response. Default: none. */
      readonly headers?: Readonly<Record<string, string>>;
    }
  | {
      /** Cut the connection. */
      readonly type: 'reset';
      /** `before`: the request is not handled; `after`: it is, but its answer is lost. Default `before`. */
      readonly when?: 'before' | 'after';
    }
  | {
      /** Cut the connection within the body. */
      readonly type: 'truncate';
      /** How many bytes of the body arrive. Default: half of them. */
      readonly keepBytes?: number;
    }
  | {
      /** Answer late. */
      readonly type: 'delay';
      /** How late, in milliseconds. */
      readonly delayMs: number;
    }
  | {
      /** Pause the queue for a while. Polls say why. */
      readonly type: 'pause';
      /** For how long, in milliseconds. */
      readonly forMs: number;
      /** What the queue reports meanwhile. Default `paused_capacity`. */
      readonly queueState?: 'paused_capacity' | 'paused_rate_limit';
      /** Why, in words. Default: none. */
      readonly reason?: string;
    };

/** When it goes wrong. Calls are counted from 1 for each rule, over the requests its `endpoint` matches. */
export interface FaultRule {
  /** `asample`, `retrieve_future`, `training_runs/*`, …; default every endpoint. */
  readonly endpoint?: string;
  /** Only requests with this HTTP method. Default: any. */
  readonly method?: string;
  /** Only these calls. Default all of them. */
  readonly nth?: number | readonly number[];
  /** Only every n-th call. */
  readonly every?: number;
  /** Chance for each call, from 0 to 1. Default 1. */
  readonly probability?: number;
  /** At most this often. */
  readonly times?: number;
  /** What to do with the request. */
  readonly fault: Fault;
}

/** Which requests fail, and how: for tests of a program's own error handling. */
export interface FaultPlan {
  /** The same seed and the same requests give the same faults. Default 0. */
  readonly seed?: number;
  /** Tried in order for each request; the first that matches applies. */
  readonly rules: readonly FaultRule[];
}

interface Armed {
  readonly rule: FaultRule;
  readonly pattern: RegExp | undefined;
  calls: number;
  fired: number;
}

/** Decides for each request whether something goes wrong with it. The first rule that applies wins. */
export class FaultInjector {
  readonly #rules: readonly Armed[];
  readonly #random: () => number;

  constructor({ seed = 0, rules }: FaultPlan) {
    this.#random = seededRandom(seed);
    this.#rules = rules.map((rule) => {
      const { probability = 1 } = rule;
      if (!(probability >= 0 && probability <= 1)) {
        throw new RangeError(`probability must be from 0 to 1, got ${probability}`);
      }
      return { rule, pattern: rule.endpoint === undefined ? undefined : glob(rule.endpoint), calls: 0, fired: 0 };
    });
  }

  next(method: string, endpoint: string): Fault | undefined {
    let chosen: Fault | undefined;
    for (const armed of this.#rules) {
      const { rule, pattern } = armed;
      if (rule.method !== undefined && rule.method !== method) continue;
      if (pattern !== undefined && !pattern.test(endpoint)) continue;
      armed.calls++;
      if (chosen === undefined && this.#applies(armed)) {
        armed.fired++;
        chosen = rule.fault;
      }
    }
    return chosen;
  }

  #applies({ rule, calls, fired }: Armed): boolean {
    const { nth, every, probability = 1, times = Infinity } = rule;
    // The dice are rolled for every call, so that one rule's limit does not shift another's luck.
    const lucky = probability >= 1 || this.#random() < probability;
    if (fired >= times || !lucky) return false;
    if (nth !== undefined && !(typeof nth === 'number' ? nth === calls : nth.includes(calls))) return false;
    return every === undefined || calls % every === 0;
  }
}

const glob = (pattern: string): RegExp =>
  new RegExp(
    `^${pattern
      .split('*')
      .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
      .join('.*')}$`,
  );
