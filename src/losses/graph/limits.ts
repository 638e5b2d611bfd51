/** A loss has at most this many operations. */
export const MOST_NODES = 10_000;
