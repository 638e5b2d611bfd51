import type { ScoredGroup } from '../learning/advantages.js';

/** Hears of each group as `grpo` takes it, in order, with the index of the step that counts it, and whether it begins a batch. */
export type GroupListener = (group: ScoredGroup, iteration: number, beginsBatch: boolean) => void;

// Subscribing travels upstream synchronously, so one variable is enough to hand a listener from `rlLog` to `grpo`.
let current: GroupListener | undefined;

/** Takes the listener of the log downstream, if there is one: for one `grpo`, synchronously, on subscribe. */
export function takeGroupListener(): GroupListener | undefined {
  const taken = current;
  current = undefined;
  return taken;
}

/** Runs `body` with a listener: a `grpo` that is subscribed to inside, synchronously, finds it. */
export function withGroupListener<R>(listener: GroupListener, body: () => R): R {
  const previous = current;
  current = listener;
  try {
    return body();
  } finally {
    current = previous;
  }
}
