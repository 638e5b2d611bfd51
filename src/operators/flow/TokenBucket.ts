import { asyncScheduler, type SchedulerLike } from 'rxjs';
import { checkPositive } from '../../support/checks.js';

/** Options of `TokenBucket`. */
export interface TokenBucketOptions {
  /** How much may pass in `perMs`, on average: > 0. */
  readonly limit: number;
  /** The time that `limit` is for, in milliseconds: > 0. Default 1000. */
  readonly perMs?: number;
  /** How much may pass at once after a pause: > 0. Default `limit`. */
  readonly burst?: number;
  /** Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/**
 * A bucket of tokens that fills at a steady rate: one allowance for all who share it.
 *
 * ```ts
 * const judgeApi = new TokenBucket({ limit: 60, perMs: 60_000, burst: 5 });   // 60 requests a minute
 * of('Is it kind?').pipe(rateLimit({ bucket: judgeApi }), mergeMap(askJudge))   // in every rollout
 * ```
 * It begins full. What weighs more than `burst` passes when the bucket is full, and is paid back before the next.
 */
export class TokenBucket {
  /** For the waits of those who share it. */
  readonly scheduler: SchedulerLike;
  readonly #perMs: number;
  readonly #burst: number;
  #level: number;
  #atMs: number;

  constructor({ limit, perMs = 1000, burst = limit, scheduler = asyncScheduler }: TokenBucketOptions) {
    checkPositive({ limit, perMs, burst });
    this.scheduler = scheduler;
    this.#perMs = limit / perMs;
    this.#burst = burst;
    this.#level = burst;
    this.#atMs = scheduler.now();
  }

  /** Takes `weight` in turn, and gives the milliseconds after which it may be used: 0 for now. */
  reserve(weight: number): number {
    if (!(weight >= 0 && weight < Infinity)) throw new RangeError(`weight must be finite and >= 0, got ${weight}`);
    const missing = Math.min(weight, this.#burst) - this.#fill();
    this.#level -= weight;
    return weight > 0 && missing > 0 ? Math.ceil(missing / this.#perMs) : 0;
  }

  /** Takes `weight` if that much is there now, and says whether it was. */
  tryTake(weight: number): boolean {
    if (this.#fill() < weight) return false;
    this.#level -= weight;
    return true;
  }

  /** Puts back what was reserved and not used. */
  giveBack(weight: number): void {
    this.#level = Math.min(this.#burst, this.#fill() + weight);
  }

  #fill(): number {
    const nowMs = this.scheduler.now();
    this.#level = Math.min(this.#burst, this.#level + Math.max(0, nowMs - this.#atMs) * this.#perMs);
    this.#atMs = nowMs;
    return this.#level;
  }
}
