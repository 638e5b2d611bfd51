/** A seed from 0 to 2³¹ − 1 that depends on the given numbers alone, on every machine. */
export function seedFrom(...parts: readonly number[]): number {
  let state = 0x9e3779b9;
  for (const part of parts) {
    // Both halves of a large number count.
    state = mixed(state ^ (part | 0));
    state = mixed(state ^ (Math.floor(part / 2 ** 32) | 0));
  }
  return state >>> 1;
}

/** splitmix32's finalizer. */
function mixed(value: number): number {
  let out = (value + 0x9e3779b9) | 0;
  out = Math.imul(out ^ (out >>> 16), 0x21f0aaad);
  out = Math.imul(out ^ (out >>> 15), 0x735a2d97);
  return out ^ (out >>> 15);
}
