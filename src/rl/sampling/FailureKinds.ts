import { isTinkerError } from '../../wire/tinkerError.js';
import type { RlListener } from '../pacing/rlEvent.js';
import { ownPlace } from './ownPlace.js';

/** Maximum number of kinds to report: messages that always differ would fill the screen. */
const MOST_TOLD = 10;

/** Warns of failed rollouts: of each kind the first, with its place in the user's code; the others are counted until the end. */
export class FailureKinds {
  readonly #kinds = new Map<string, { readonly text: string; count: number }>();

  constructor(private readonly report: RlListener) {}

  add(error: unknown): void {
    const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) };
    const place = ownPlace(error);
    // Messages of one kind may differ in numbers and ids.
    const key = `${name} ${isTinkerError(error) ? error.code : (place ?? message.replace(/\d+/g, '0'))}`;
    const known = this.#kinds.get(key);
    if (known !== undefined) known.count++;
    else if (this.#kinds.size < MOST_TOLD) {
      const text = `${name}: ${message}${place === undefined ? '' : ` (${place})`}`;
      this.#kinds.set(key, { text, count: 1 });
      this.#warn(`a rollout failed: ${text}. Further failures like this one are counted, not shown`);
    }
  }

  /** Tells how many there were of each kind. */
  end(): void {
    for (const { text, count } of this.#kinds.values()) {
      if (count > 1) this.#warn(`${count} rollouts failed: ${text}`);
    }
    this.#kinds.clear();
  }

  #warn(message: string): void {
    this.report({ type: 'rl-warning', code: 'rollouts-failed', message });
  }
}
