import { SourceError } from '../SourceError.js';

/** Opens an iterable on every subscribe; one that is its own iterator, as generators are, only once. */
export function oneTime<A extends unknown[], I extends object>(
  name: string,
  values: I | ((...given: A) => I),
  key: typeof Symbol.iterator | typeof Symbol.asyncIterator,
): (...given: A) => I {
  if (typeof values === 'function' && !(key in values)) return values;
  const iterable = values as I & Record<symbol, () => unknown>;
  if (typeof iterable[key] !== 'function') throw new TypeError(`${name} needs an iterable, got ${typeof values}`);
  let taken = false;
  return () => {
    const iterator = iterable[key]!();
    if (iterator === iterable && taken) {
      throw new SourceError(
        name,
        'a generator was read already, and can be read only once. Give a function that makes one',
      );
    }
    taken = true;
    return { [key]: () => iterator } as unknown as I;
  };
}
