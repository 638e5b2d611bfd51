/** The tokens of a piece: one id, as most pieces have, or several. */
export type PieceTokens = number | readonly number[];

/** Longer pieces hardly ever come again. */
const LONGEST = 64;

/**
 * Remembers the tokens of pieces seen before; between `capacity` and twice as many.
 *
 * Two generations stand in for a least-recently-used order, at no cost on a hit: a full young generation becomes the old one, and what is
 * used again moves back.
 */
export class PieceCache {
  #young = new Map<string, PieceTokens>();
  #old = new Map<string, PieceTokens>();

  constructor(private readonly capacity = 65_536) {}

  get(piece: string): PieceTokens | undefined {
    const tokens = this.#young.get(piece);
    if (tokens !== undefined) return tokens;
    const known = this.#old.get(piece);
    if (known !== undefined) this.#put(piece, known);
    return known;
  }

  set(piece: string, tokens: PieceTokens): void {
    if (piece.length > LONGEST) return;
    // A piece is a view into its document, which a cached key would keep alive: keep a copy.
    this.#put(Buffer.from(piece, 'utf16le').toString('utf16le'), tokens);
  }

  #put(piece: string, tokens: PieceTokens): void {
    if (this.#young.size >= this.capacity) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(piece, tokens);
  }
}
