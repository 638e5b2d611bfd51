import { ValidationError } from '../../wire/tinkerError.js';
import type { Pace } from './Pace.js';

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

  /** A group has come. @throws ValidationError where a later one came before it */
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
