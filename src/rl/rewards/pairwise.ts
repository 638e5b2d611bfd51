import { concatMap, defer, from, last, map, mergeMap, type Observable, type ObservableInput, of, reduce } from 'rxjs';
import { toObservable } from '../../support/toObservable.js';
import { checkIntegers } from '../../support/checks.js';
import { seedFrom } from '../../support/random.js';
import type { GroupReward } from './groupRewards.js';
import type { Trajectory } from '../sampling/rollout.js';

/** Which of two tries at a task is better: 1 the first, 0 the second, 0.5 neither, or anything in between. At once or later. */
export type Compare<T> = (
  first: Trajectory,
  second: Trajectory,
  task: T,
  context: { readonly seed: number },
) => number | ObservableInput<number>;

/** Options of `pairwise`. */
export interface PairwiseOptions {
  /**
   * - `all-pairs` (default): every two are compared, n · (n − 1) / 2 times
   * - `tournament`: ⌈log₂ n⌉ rounds in which those that stand alike meet, n / 2 comparisons each
   */
  readonly matches?: 'all-pairs' | 'tournament';
  /** Whether each two are compared both ways round, which takes out what a judge gives to the first. Default true. */
  readonly bothWays?: boolean;
  /** How many comparisons of a group may be in flight: an integer ≥ 1. Default 16. */
  readonly concurrency?: number;
}

interface Match {
  readonly a: number;
  readonly b: number;
  /** Of `a`, from 0 to 1. */
  readonly score: number;
}

/**
 * A reward for whole groups from comparing its tries two by two: from −1, lost every comparison, to 1, won every one.
 *
 * ```ts
 * groupRewards(pairwise(comparison({ sampler, renderer, criteria: 'The kinder one.' }), { matches: 'tournament' }))
 * ```
 * A comparison that throws, or gives no number from 0 to 1, fails the group.
 *
 * @see comparison
 */
export function pairwise<T>(compare: Compare<T>, options: PairwiseOptions = {}): GroupReward<T> {
  const { matches = 'all-pairs', bothWays = true, concurrency = 16 } = options;
  checkIntegers({ concurrency }, 1);
  return (trajectories, task): Observable<readonly number[]> => {
    const count = trajectories.length;
    const ask = (first: number, second: number): Observable<number> =>
      defer(() => {
        const seed = seedFrom(trajectories[first]!.seed, trajectories[second]!.seed);
        const said = compare(trajectories[first]!, trajectories[second]!, task, { seed });
        return toObservable<number>(said).pipe(map(checked));
      });
    const there = (a: number, b: number) => ask(a, b).pipe(map((score): Match => ({ a, b, score })));
    const back = (a: number, b: number) => ask(b, a).pipe(map((score): Match => ({ a, b, score: 1 - score })));
    const play = (pairs: readonly (readonly [number, number])[]): Observable<readonly Match[]> =>
      from(pairs.flatMap(([a, b]) => (bothWays ? [there(a, b), back(a, b)] : [there(a, b)]))).pipe(
        mergeMap((match) => match, concurrency),
        reduce<Match, readonly Match[]>((made, match) => [...made, match], []),
      );
    if (count < 2) return of(trajectories.map(() => 0));
    if (matches === 'all-pairs') {
      const pairs = trajectories.flatMap((_, a) => trajectories.slice(a + 1).map((__, at) => [a, a + 1 + at] as const));
      return play(pairs).pipe(map((played) => rewardsOf(count, played)));
    }
    return defer(() => {
      let all: readonly Match[] = [];
      return from(Array.from({ length: Math.ceil(Math.log2(count)) })).pipe(
        // The pairs depend on the rounds before.
        concatMap(() => play(meetings(count, all))),
        map((played) => (all = [...all, ...played])),
        last(),
        map((played) => rewardsOf(count, played)),
      );
    });
  };
}

/** Neighbours by standing; of an odd number the last one rests. */
function meetings(count: number, played: readonly Match[]): readonly (readonly [number, number])[] {
  const standing = rewardsOf(count, played);
  const order = Array.from({ length: count }, (_, index) => index).sort((a, b) => standing[b]! - standing[a]! || a - b);
  const open = new Set(order);
  const met = new Set(played.flatMap(({ a, b }) => [`${a} ${b}`, `${b} ${a}`]));
  const pairs: [number, number][] = [];
  for (const a of order) {
    if (!open.delete(a)) continue;
    const [nearest] = open;
    const b = [...open].find((other) => !met.has(`${a} ${other}`)) ?? nearest;
    if (b === undefined) break;
    open.delete(b);
    pairs.push([a, b]);
  }
  return pairs;
}

/** Of each, the mean of its matches, from −1 to 1. */
function rewardsOf(count: number, played: readonly Match[]): readonly number[] {
  const sums = new Float64Array(count);
  const games = new Float64Array(count);
  for (const { a, b, score } of played) {
    sums[a]! += 2 * score - 1;
    sums[b]! -= 2 * score - 1;
    games[a]!++;
    games[b]!++;
  }
  return Array.from(sums, (sum, index) => (games[index] === 0 ? 0 : sum / games[index]!));
}

function checked(score: number): number {
  if (!(score >= 0 && score <= 1)) throw new RangeError(`a comparison must give a number from 0 to 1, got ${score}`);
  return score;
}
