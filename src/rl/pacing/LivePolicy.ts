import { concat, defer, EMPTY, type Observable, of, Subject } from 'rxjs';
import type { SamplingClient } from '../../client/SamplingClient.js';
import { Pace } from './Pace.js';

/** Something to sample from, and how many steps its weights hold: one for each batch of `grpo`. */
export interface PolicyVersion<S = SamplingClient> {
  /** Samples from these weights. */
  readonly sampler: S;
  /** How many steps these weights hold. */
  readonly step: number;
}

/**
 * The newest weights of a model in training: what `grpo` publishes and `rollouts` samples from.
 *
 * ```ts
 * const policy = new LivePolicy();
 * tasks.pipe(rollouts(agent, { policy, group: 16 }), advantages(), grpo(trainer, { policy, groupsPerBatch: 32 }));
 * ```
 * Give the same one to both, and one to one run: it also carries the pace between them. Empty until `grpo` has
 * published the weights that training starts from.
 */
export class LivePolicy<S = SamplingClient> {
  readonly #published = new Subject<PolicyVersion<S>>();
  #current: PolicyVersion<S> | undefined;
  /** @internal */
  readonly pace = new Pace();
  /** The newest version, if there is one, then each new one. */
  readonly versions$: Observable<PolicyVersion<S>> = defer(() =>
    concat(this.#current === undefined ? EMPTY : of(this.#current), this.#published),
  );

  /** The newest version; undefined before the first. */
  get current(): PolicyVersion<S> | undefined {
    return this.#current;
  }

  /**
   * Makes a sampler the newest and says whether it did: weights of fewer steps than the newest came late and are left out.
   * Samples in flight continue with the one they started with.
   */
  publish(sampler: S, step: number): boolean {
    if (this.#current !== undefined && step < this.#current.step) return false;
    this.#current = { sampler, step };
    this.#published.next(this.#current);
    this.pace.changed();
    return true;
  }

  /** @internal Forgets the weights of a run before. */
  clear(): void {
    this.#current = undefined;
  }
}
