import { checkIntegers } from './checks.js';

/** Spreads a 32-bit word, so that neighbouring numbers give unrelated ones: splitmix32's finalizer. */
export function mix32(word: number): number {
  let mixed = Math.imul(word ^ (word >>> 16), 0x21f0aaad);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}

const STEP = 0x9e3779b9;

/** Numbers in [0, 1) that depend on the seed alone, on every machine (splitmix32). */
export function seededRandom(seed: number): () => number {
  checkIntegers({ seed });
  // Both halves of a large seed count.
  let state = (seed ^ Math.floor(seed / 2 ** 32)) | 0;
  return () => mix32((state = (state + STEP) | 0)) / 2 ** 32;
}

/** A seed from 0 to 2³¹ − 1 that depends on the given numbers alone, on every machine. */
export function seedFrom(...parts: readonly number[]): number {
  let state = STEP;
  for (const part of parts) {
    // Both halves of a large number count.
    for (const half of [part | 0, Math.floor(part / 2 ** 32) | 0]) state = mix32(((state ^ half) + STEP) | 0);
  }
  return state >>> 1;
}

/** The chance operators use if none is injected; unlike a seeded one it differs between processes. */
export function systemRandom(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]! / 2 ** 32;
}
