import { defer, map, type Observable, retry } from 'rxjs';
import { checkIntegers } from '../../support/checks.js';
import type { Renderer } from '../../chat/renderers/core/Renderer.js';
import { cancelling } from '../../support/cancelling.js';
import type { Sampleable } from '../../operators/sampling/sampleFrom.js';
import type { SamplingParams } from '../../wire/sampling.js';
import { seedFrom } from '../../support/random.js';
import { splitShared } from './splitShared.js';
import type { Trajectory } from '../sampling/rollout.js';
import type { GroupReward } from './groupRewards.js';

/** Options of `judge`. */
export interface JudgeOptions<T> {
  /** The judge: a sampler of any model. */
  readonly sampler: Sampleable;
  /** Writes for the judge and reads what it says. */
  readonly renderer: Renderer;
  /** Reads the trajectories' tokens. Default: the judge's own tokenizer, right where both models share one. */
  readonly decode?: (tokens: Int32Array) => string;
  /** What makes a try good, in words; it may depend on the task. */
  readonly criteria: string | ((task: T) => string);
  /**
   * What the judge is asked, in words, given the tries, what they have in common, and the task. It must still end with the scores, or for
   * {@link comparison} with A, B or tie. Default: everything, the criteria, and how to answer.
   */
  readonly question?: (tries: readonly string[], shared: string, task: T) => string;
  /** How the judge samples. Default: at most 1024 tokens. */
  readonly samplingParams?: SamplingParams;
  /** How often a judgement that cannot be read is asked for again, with another seed: an integer ≥ 0. Default 2. */
  readonly retries?: number;
}

/**
 * A reward for whole groups without a hand-written grader: a judge sees all tries at a task side by side and scores each from 0 to 1.
 *
 * ```ts
 * groupRewards(judge({ sampler, renderer, criteria: 'Polite, short, and in rhyme.' }))
 * ```
 * What all tries have in common, the prompt mostly, is shown once. How many groups are judged at once is a matter of {@link groupRewards}.
 * A judgement that still cannot be read after its retries fails the group.
 */
export function judge<T>(options: JudgeOptions<T>): GroupReward<T> {
  const ask = asking(options, allTries, readScores);
  return (trajectories, task) => ask(trajectories, task, trajectories[0]!.seed);
}

/** Asks a judge about trajectories, again with another seed while its words cannot be read. */
export function asking<T, A>(
  options: JudgeOptions<T>,
  defaultQuestion: (criteria: string, shared: string, tries: readonly string[]) => string,
  read: (text: string, tries: number) => A,
): (trajectories: readonly Trajectory[], task: T, seed: number) => Observable<A> {
  const { sampler, renderer, criteria, samplingParams = { maxTokens: 1024 }, retries = 2 } = options;
  const { decode = (tokens: Int32Array) => renderer.tokenizer.decode(tokens) } = options;
  const wanted = (task: T) => (typeof criteria === 'string' ? criteria : criteria(task));
  const { question = (tries, shared, task) => defaultQuestion(wanted(task), shared, tries) } = options;
  checkIntegers({ retries }, 0);
  return (trajectories, task, seed) => {
    const { shared, parts } = splitShared(trajectories);
    const content = question(parts.map(decode), decode(shared), task);
    const prompt = renderer.buildGenerationPrompt([{ role: 'user', content }]);
    let attempt = 0;
    return defer(() => {
      const params = { seed: seedFrom(seed, attempt++), stop: renderer.getStopSequences(), ...samplingParams };
      return cancelling(sampler.sample({ prompt, samplingParams: params }));
    }).pipe(
      map(({ sequences }) => read(renderer.parse(sequences[0]!.tokens).text, parts.length)),
      retry({ count: retries }),
    );
  };
}

function allTries(criteria: string, shared: string, parts: readonly string[]): string {
  const tries = parts.map((part, index) => `<try ${index + 1}>\n${part}\n</try ${index + 1}>`).join('\n\n');
  const last = parts.length;
  return (
    `Below are ${last} tries at the same task. Compare them by this: ${criteria}\n\n` +
    `<task>\n${shared}\n</task>\n\n${tries}\n\n` +
    `Score each from 0 (worst) to 1 (best); equal tries get equal scores. ` +
    `End with one line of JSON: {"scores": [score of try 1, …, score of try ${last}]}`
  );
}

/** The last list of `count` numbers in the text. @throws Error if there is none. */
function readScores(text: string, count: number): readonly number[] {
  const lists = [...text.matchAll(/\[([^[\]]*)\]/g)].map(([, inside]) => inside!.split(',').map((part) => part.trim()));
  const scores = lists
    .findLast((list) => list.length === count && list.every((part) => /^-?\d*\.?\d+$/.test(part)))
    ?.map(Number);
  if (scores === undefined) throw new Error(`the judge gave no list of ${count} scores`);
  if (scores.some((score) => score < 0 || score > 1)) throw new Error('the judge gave a score outside of 0 to 1');
  return scores;
}
