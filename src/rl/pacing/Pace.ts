import { Subject } from 'rxjs';
import type { Group } from '../sampling/rollout.js';
import { ValidationError } from '../../wire/tinkerError.js';

/** How far sampling may run ahead of training: what `rollouts` asks and `grpo` tells. */
export class Pace {
  /** How many groups may be admitted beyond those that training is done with. */
  limit = Infinity;
  /** How many groups training is done with, in this run. */
  done = 0;
  /** How many tasks there are, once their source has ended. */
  total: number | undefined;
  /** How many groups were admitted, went out of `rollouts`, and came to `grpo`, those left out on the way included. */
  admitted = 0;
  emitted = 0;
  arrived = 0;
  /** How many batches are being trained on. */
  training = 0;
  /** Groups that are sampled and not known to be in a checkpoint, by their order. */
  readonly finished = new Map<number, Group>();
  readonly #changes = new Subject<void>();
  readonly changes = this.#changes.asObservable();

  /** Begins a run. */
  start(limit: number): void {
    this.limit = limit;
    this.done = 0;
    this.total = undefined;
    this.admitted = this.emitted = this.arrived = this.training = 0;
    this.finished.clear();
  }

  /** Whether sampling waits for training, and training for groups that were sampled and did not come. */
  get isStuck(): boolean {
    const { admitted, emitted, arrived, done, limit, training } = this;
    return training === 0 && emitted === admitted && arrived < emitted && admitted - done >= limit;
  }

  /** A group was sampled. Where nobody trains, nobody needs to know it again. */
  sampled(group: Group): void {
    if (this.limit !== Infinity) this.finished.set(group.order, group);
  }

  /** Groups before this one are in a checkpoint, or in none that is still to come. */
  forgetBefore(order: number): void {
    for (const known of this.finished.keys()) if (known < order) this.finished.delete(known);
  }

  /** Training has finished `groups` more groups. */
  release(groups: number): void {
    this.done += groups;
    this.changed();
  }

  changed(): void {
    this.#changes.next();
  }
}

/** Follows the order of the groups that come to training from `rollouts`. */
export class Arrivals {
  #taken: number;

  /** `first` is the order of the first group that is to come. */
  constructor(
    private readonly pace: Pace,
    private readonly first: number,
  ) {
    this.#taken = first;
  }

  /** A group has come. @throws ValidationError if a later one came before it */
  arrive(order: number): void {
    const expected = this.first + this.pace.arrived;
    if (order < expected) {
      throw new ValidationError(
        `group ${order} came to grpo after group ${expected - 1}: operators between rollouts and grpo must keep the order ` +
          'of groups; use concatMap in place of mergeMap',
      );
    }
    this.pace.arrived = order + 1 - this.first;
  }

  /** A group is taken into a batch. Those that were left out before it, by a `filter` for example, make room for others. */
  take(order: number): void {
    const missing = order - this.#taken;
    this.#taken = order + 1;
    if (missing > 0) this.pace.release(missing);
  }
}
