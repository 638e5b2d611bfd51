import { type Entry, placeIn } from '../../losses/trace/callerLine.js';
import type { RolloutFailure } from './rollout.js';

/** The folder of this library, unless it is part of a bundle. */
const LIBRARY = /^(.*)rl\/sampling\/ownPlace\.[jt]s$/.exec(import.meta.url)?.[1];
const isForeign = (place: string): boolean =>
  /[\\/]node_modules[\\/]/.test(place) ||
  (LIBRARY !== undefined && (place.startsWith(LIBRARY) || `file://${place}`.startsWith(LIBRARY)));

/** Where in the user's own code an error was thrown, as `file:line:column`; undefined if its stack does not tell. */
export function ownPlace(error: unknown): string | undefined {
  return error instanceof Error ? placeIn(error.stack, isForeign) : undefined;
}

/** Names a function that was given to `entry`, with the user's line that called `entry`. Call it inside `entry`. */
export function givenTo(entry: Entry, what: string): () => string {
  const held: { stack?: string } = {};
  Error.captureStackTrace?.(held, entry);
  return () => {
    const place = placeIn(held.stack, isForeign);
    return place === undefined ? what : `${what} (${place})`;
  };
}

/** A failed rollout as plain data. */
export function failureOf(error: unknown, index: number, attempts: number): RolloutFailure {
  const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) };
  const place = ownPlace(error);
  return { index, name, message, attempts, ...(place === undefined ? {} : { place }) };
}
