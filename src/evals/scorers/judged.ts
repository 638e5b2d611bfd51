import { defer, map, type Observable, retry } from 'rxjs';
import { checkIntegers } from '../../support/checks.js';
import type { Renderer } from '../../chat/renderers/core/Renderer.js';
import { cancelling } from '../../support/cancelling.js';
import type { Sampleable } from '../../operators/sampling/sampleFrom.js';
import { seedFrom } from '../../support/random.js';
import type { SamplingParams } from '../../wire/sampling.js';
import type { ScoreArgs } from './scorer.js';

/** Options of `judged`. */
export interface JudgedOptions {
  /** Who judges: a sampler of any model. */
  readonly sampler: Sampleable;
  /** Writes for the judge and reads what it says. */
  readonly renderer: Renderer;
  /** What makes an answer good, in words. */
  readonly criteria: string;
  /** How the judge samples. Default: greedily, at most 1024 tokens. */
  readonly samplingParams?: SamplingParams;
  /** How often a judgement that cannot be read is asked for again, with another seed: an integer ≥ 0. Default 2. */
  readonly retries?: number;
}

/**
 * Another model scores each output from 0 to 1, by criteria in words.
 *
 * A judgement that still cannot be read after its retries is a failure of the sample, not a score of 0.
 */
export function judged({ sampler, renderer, criteria, samplingParams, retries = 2 }: JudgedOptions) {
  checkIntegers({ retries }, 0);
  return function judged(args: ScoreArgs): Observable<number> {
    let attempt = 0;
    const prompt = renderer.buildGenerationPrompt([{ role: 'user', content: question(criteria, args) }]);
    return defer(() => {
      const seed = seedFrom(args.trajectory.seed, attempt++);
      const first = { maxTokens: 1024, temperature: attempt === 1 ? 0 : 1 };
      const params = { seed, stop: renderer.getStopSequences(), ...first, ...samplingParams };
      return cancelling(sampler.sample({ prompt, samplingParams: params }));
    }).pipe(
      map(({ sequences }) => readScore(renderer.parse(sequences[0]!.tokens).text)),
      retry({ count: retries }),
    );
  };
}

function question(criteria: string, { input, output, expected }: ScoreArgs): string {
  const reference = expected === undefined ? '' : `<reference>\n${expected}\n</reference>\n\n`;
  return (
    `Judge an answer by this: ${criteria}\n\n<task>\n${input}\n</task>\n\n${reference}<answer>\n${output}\n</answer>\n\n` +
    `Score it from 0 (worst) to 1 (best). End with one line of JSON: {"score": number}`
  );
}

/** The last score in the text. @throws Error if there is none from 0 to 1 */
function readScore(text: string): number {
  const said = [...text.matchAll(/"score"\s*:\s*(-?\d*\.?\d+)/g)].at(-1)?.[1];
  if (said === undefined) throw new Error('the judge gave no score');
  const score = Number(said);
  if (!(score >= 0 && score <= 1)) throw new Error(`the judge gave a score outside of 0 to 1: ${said}`);
  return score;
}
