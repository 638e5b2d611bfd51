/**
 * Pairs of token ids → the rank at which they merge. A hash table in typed arrays: this is looked up for every pair of bytes of every new
 * piece, and a `Map` with a key made of both takes several times as long.
 */
export class PairTable {
  readonly #mask: number;
  readonly #left: Int32Array;
  readonly #right: Int32Array;
  readonly #rank: Int32Array;

  constructor(size: number) {
    const capacity = 2 ** Math.ceil(Math.log2(Math.max(size, 8) * 2));
    this.#mask = capacity - 1;
    this.#left = new Int32Array(capacity).fill(-1);
    this.#right = new Int32Array(capacity);
    this.#rank = new Int32Array(capacity);
  }

  /** Of a pair that is set twice, the last rank counts. */
  set(left: number, right: number, rank: number): void {
    const slot = this.#slot(left, right);
    this.#left[slot] = left;
    this.#right[slot] = right;
    this.#rank[slot] = rank;
  }

  /** The rank of a pair, or −1. */
  get(left: number, right: number): number {
    const slot = this.#slot(left, right);
    return this.#left[slot] === -1 ? -1 : this.#rank[slot]!;
  }

  /** Where a pair is, or the free slot where it would be. */
  #slot(left: number, right: number): number {
    let slot = (Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca6b)) & 0x7fffffff;
    slot = (slot ^ (slot >>> 15)) & this.#mask;
    while (this.#left[slot] !== -1 && (this.#left[slot] !== left || this.#right[slot] !== right))
      slot = (slot + 1) & this.#mask;
    return slot;
  }
}
