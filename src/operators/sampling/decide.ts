import { defer, map, type Observable, type OperatorFunction } from 'rxjs';
import { decisionPrompt, type DecisionOptions } from '../../chat/datum/decisionRow.js';
import { labelTokens } from '../../chat/datum/labels.js';
import type { SampleOptions } from '../../client/SamplingClient.js';
import type { SampleResponse } from '../../wire/sampling.js';
import { TensorData } from '../../wire/tensor.js';
import { ValidationError } from '../../wire/tinkerError.js';
import { type Sampleable, sampleFrom, type SampleFromOptions } from './sampleFrom.js';

/** Options of `decide`. */
export type DecideOptions<P> = DecisionOptions<P> & Pick<SampleFromOptions<P>, 'budgetBytes' | 'concurrency'>;

/** Which label a model chooses, and how sure it is. */
export interface Decision<P> {
  /** The source's value that was decided about. */
  readonly item: P;
  /** The likeliest label. */
  readonly label: string;
  /** Its probability among the labels, from 1 / K to 1. */
  readonly confidence: number;
  /** The probability of every label; they sum to 1. */
  readonly probabilities: Readonly<Record<string, number>>;
  /** How likely the model was to give any of the labels, from 0 to 1. Near 0, it would rather have said something else. */
  readonly mass: number;
  /** Tokens of the prompt, with one for the answer. */
  readonly promptTokens: number;
}

/**
 * Decides between labels, in one request per item: the first tokens of all labels are scored where the answer starts, and made
 * probabilities that sum to 1.
 *
 * ```
 * source    -a-b-|
 * a          ----x|
 * b            -y|
 * result    ---y-x|
 * ```
 * ```ts
 * rows.pipe(decide(sampler, { renderer, labels: ['yes', 'no'] }))
 * ```
 * Takes rows as `toDecisions` does, which trains what this asks. The labels are checked at the call; a row of no known form ends the stream
 * with an error, as does a service that does not score given tokens. Errors, completion, cancellation, samplers that change and bounds are
 * those of {@link sampleFrom}.
 */
export function decide<P, S extends Sampleable>(
  sampler: S | Observable<S>,
  options: DecideOptions<P>,
): OperatorFunction<P, Decision<P>> {
  const { labels, budgetBytes, concurrency } = options;
  const tokens = labelTokens(options.renderer, labels);
  const request = (item: P): SampleOptions => {
    // One token more, so that the answer's position is one of the prompt. Which one does not matter.
    const prompt = decisionPrompt(item, options).appendInt(tokens[0]!);
    return { prompt, samplingParams: { maxTokens: 1 }, targetPromptLogprobs: lastRow(prompt.length - 1, tokens) };
  };
  const bounds = {
    ...(budgetBytes === undefined ? {} : { budgetBytes }),
    ...(concurrency === undefined ? {} : { concurrency }),
  };
  return (source) =>
    defer(() =>
      source.pipe(
        map((item) => ({ item, asked: request(item) })),
        sampleFrom(sampler, { request: ({ asked }) => asked, ...bounds }),
        map(({ item: { item, asked }, response }) => ({
          item,
          ...decisionOf(logprobsIn(response, labels.length), labels),
          promptTokens: asked.prompt.length,
        })),
      ),
    );
}

/** Token ids to score in the last of `rows` rows, and nothing in the others. */
function lastRow(rows: number, tokens: Int32Array): TensorData {
  const crowIndices = new Int32Array(rows + 1);
  crowIndices[rows] = tokens.length;
  const sparse = { crowIndices, colIndices: Int32Array.from(tokens.keys()) };
  return new TensorData({ dtype: 'int64', data: tokens, shape: [rows, tokens.length], sparse });
}

function logprobsIn({ targetPromptLogprobs }: SampleResponse, count: number): readonly number[] {
  const found = Array.from(targetPromptLogprobs?.toDense().data.subarray(-count) ?? [], Number);
  if (found.length !== count || !found.every(Number.isFinite))
    throw new ValidationError('the service gave no logprobs of the labels: it may not support targetPromptLogprobs');
  return found;
}

function decisionOf(logprobs: readonly number[], labels: readonly string[]) {
  const shares = logprobs.map(Math.exp);
  const best = Math.max(...logprobs);
  const relative = logprobs.map((logprob) => Math.exp(logprob - best));
  const total = relative.reduce((sum, share) => sum + share, 0);
  return {
    label: labels[logprobs.indexOf(best)]!,
    confidence: 1 / total,
    probabilities: Object.fromEntries(labels.map((label, place) => [label, relative[place]! / total])),
    mass: shares.reduce((sum, share) => sum + share, 0),
  };
}
