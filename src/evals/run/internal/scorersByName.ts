import type { Scorer } from '../../scorers/scorer.js';

/** Scorers with their names: those they are listed by, or those of their functions. @throws RangeError if two share one */
export function scorersByName<T>(
  scorers: readonly Scorer<T>[] | Readonly<Record<string, Scorer<T>>> = [],
): readonly (readonly [name: string, scorer: Scorer<T>])[] {
  if (!Array.isArray(scorers)) return Object.entries(scorers as Readonly<Record<string, Scorer<T>>>);
  const named = (scorers as readonly Scorer<T>[]).map((scorer, place) => [nameOf(scorer, place), scorer] as const);
  const names = new Set(named.map(([name]) => name));
  if (names.size < named.length)
    throw new RangeError('two scorers have the same name: list them as { name: scorer } instead');
  return named;
}

function nameOf(scorer: { readonly name: string; readonly scorerName?: unknown }, place: number): string {
  if (typeof scorer.scorerName === 'string') return scorer.scorerName;
  return scorer.name === '' ? `score_${place + 1}` : scorer.name;
}
