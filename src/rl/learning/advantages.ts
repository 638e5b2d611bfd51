import { map, type OperatorFunction } from 'rxjs';
import { scored } from './scored.js';
import type { DropReason } from '../pacing/rlEvent.js';
import type { Group } from '../sampling/rollout.js';

/** A group, and how much better than the others each of its trajectories was. */
export interface ScoredGroup<T = unknown> extends Group<T> {
  /** One for each trajectory. Where a turn has its own and the method is `given`, that one counts. */
  readonly advantages: readonly number[];
  /** Whether it is trained on. */
  readonly teaches: boolean;
  /** Why it is not trained on. */
  readonly dropped?: DropReason;
  /** How its advantages reach the tokens. */
  readonly scoring: Scoring;
}

/** How advantages reach the tokens. */
export interface Scoring {
  /** Whether the turns' own advantages count. */
  readonly given: boolean;
  /** Whether each sequence weighs the same, whatever its length. */
  readonly perSequence: boolean;
  /** Whether answers that were cut off take no part in training. */
  readonly maskCutOff: boolean;
}

/** Options of `advantages`. */
export interface AdvantagesOptions {
  /**
   * - `mean` (default): reward − mean of the group's rewards, without dividing by their deviation
   * - `mean-deviation`: the same, divided by the sample deviation (n − 1) + 10⁻⁴
   * - `leave-one-out`: reward − mean of the *other* rewards
   * - `given`: the reward itself, or what the turns carry as `advantage`
   */
  readonly method?: 'mean' | 'mean-deviation' | 'leave-one-out' | 'given';
  /**
   * - `token` (default): every sampled token has the advantage, so that long answers pull harder
   * - `sequence`: it is divided by the number of tokens trained on in the trajectory; masked tokens do not count
   */
  readonly per?: 'token' | 'sequence';
  /** Whether groups with equal rewards are trained on too; their advantages are 0. Default: no, they teach nothing. */
  readonly keepConstant?: boolean;
  /** Whether answers that ended at the token limit take no part in training; their rewards still count in the mean. Default: no. */
  readonly maskCutOff?: boolean;
}

/**
 * Gives each trajectory its advantage within its group, and says which groups teach nothing.
 *
 * ```
 * source    -a-b-|                  a: rewards 1 0, b: rewards 1 1
 * result    -x-y-|                  x: advantages ½ −½, y: teaches false, dropped 'constant'
 * ```
 * Every group is passed on, in step with the source, so that those not trained on are still counted and seen. Errors and
 * completion pass. Holds nothing.
 */
export function advantages<T>(options: AdvantagesOptions = {}): OperatorFunction<Group<T>, ScoredGroup<T>> {
  return (source) => source.pipe(map((group) => scored(group, options)));
}
