import type { RlEvent, RlListener } from './rlEvent.js';

/** Tells a listener, if there is one, and prints warnings where there is none. */
export function reporter(listener: RlListener | undefined): RlListener {
  return (event: RlEvent) => {
    try {
      if (listener !== undefined) listener(event);
      else if (event.type === 'rl-warning') console.error(`tinker-rx warning: ${event.message}`);
    } catch {
      // A listener that throws must not end the run it listens to.
    }
  };
}
