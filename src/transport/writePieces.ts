import type { Writable } from 'node:stream';

/** Writes the pieces one by one, each after the previous one has left. `onEnd` is called when all have; never if the stream fails. */
export function writePieces(stream: Writable, pieces: Generator<Uint8Array, void>, onEnd: () => void): void {
  const next = (): void => {
    const piece: IteratorResult<Uint8Array, void> = pieces.next();
    if (piece.done === true) onEnd();
    else stream.write(piece.value, (error) => error ?? next());
  };
  next();
}
