import { TinkerError } from '../../wire/tinkerError.js';
import type { Group, RolloutFailure } from '../sampling/rollout.js';

/** Every rollout of a whole batch failed, or no group of it could be judged: there is nothing to learn from, and money is spent. */
export class RolloutsFailedError extends TinkerError {
  readonly code = 'rollouts_failed';
}

/** Counts groups that failed as a whole, one after the other. */
export class FailedGroups {
  #inRow = 0;
  #failures = new Map<string, number>();
  #anySucceeded = false;

  add({ trajectories, failures }: Group): void {
    // A failure without a place in the group is one of the whole group.
    if (trajectories.length > 0 && failures.every(({ index }) => index >= 0)) {
      this.#anySucceeded = true;
      this.#inRow = 0;
      this.#failures.clear();
      return;
    }
    this.#inRow++;
    for (const failure of failures) {
      const text = described(failure);
      this.#failures.set(text, (this.#failures.get(text) ?? 0) + 1);
    }
  }

  /** @throws RolloutsFailedError if this many groups in a row have failed. */
  check(groups: number): void {
    if (this.#inRow < groups) return;
    const [[text, times] = ['no rollout was made', 0]] = [...this.#failures].sort(([, a], [, b]) => b - a);
    throw new RolloutsFailedError(
      `all rollouts of ${this.#inRow} ${this.#inRow === 1 ? 'group' : 'groups'} in a row failed, a whole batch: ${text} (${times} times). ` +
        'Correct what failed; then resume from the last checkpoint, or start again',
    );
  }

  /** The tasks have ended. @throws RolloutsFailedError if nothing but failures came. */
  end(): void {
    if (!this.#anySucceeded && this.#inRow > 0) this.check(this.#inRow);
  }
}

const described = ({ name, message, place }: RolloutFailure): string =>
  `${name}: ${message}${place === undefined ? '' : ` (${place})`}`;
