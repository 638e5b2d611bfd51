/** A clock for records that are sorted by their time: each reading is later than the one before. */
export function distinctTimes(now: () => number): () => number {
  let last = 0;
  return () => (last = Math.max(now(), last + 1));
}
