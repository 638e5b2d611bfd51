import { chooseToken } from './chooseToken.js';
import type { LogitRow } from './logitRow.js';
import { createRandom } from '../numeric/random.js';
import type { CheckedSample } from './sampleRequest.js';
import { createTopkTable, fillTopkRow } from './topkTable.js';
import type { EngineTensor, SampleResult } from '../types.js';

/** The parts of a result that are about the prompt. */
export type PromptScores = Omit<SampleResult, 'sequences' | 'promptCacheHitTokens'>;

/** Stream of a seed used for alternatives, far from those of the samples (0, 1, 2, …). */
const ALTERNATIVES_STREAM = 0x7fff_ffff;

/** The first prompt position some answer needs, or the prompt's length if none does. */
export function firstScored({ prompt, scoring }: CheckedSample): number {
  const { logprobs, topk, targets, alternatives, from } = scoring;
  if (targets !== undefined || alternatives > 0) return 1;
  return logprobs || topk > 0 ? from : prompt.length;
}

/** Answers all questions about the prompt; `rowBefore(i)` gives the logits that predict prompt position i. */
export function scorePrompt(
  { prompt, scoring, choice }: CheckedSample,
  seed: number,
  rowBefore: (position: number) => LogitRow,
): PromptScores {
  const { length } = prompt;
  const { from, topk, targets, alternatives } = scoring;
  const logprobs = scoring.logprobs ? new Float32Array(length).fill(NaN) : undefined;
  const table = topk > 0 ? createTopkTable(length, topk) : undefined;
  for (let position = from; position < length && (logprobs ?? table) !== undefined; position++) {
    const row = rowBefore(position);
    if (logprobs !== undefined) logprobs[position] = row.logits[prompt[position]!]! - row.total;
    if (table !== undefined) fillTopkRow(table, position, row);
  }
  const scores: { -readonly [K in keyof PromptScores]: PromptScores[K] } = {};
  if (logprobs !== undefined) scores.promptLogprobs = logprobs;
  if (table !== undefined) scores.topkPromptLogprobs = table;
  if (targets !== undefined) scores.targetPromptLogprobs = scoreTargets(targets, rowBefore);
  if (alternatives > 0) {
    const random = createRandom(seed, ALTERNATIVES_STREAM);
    const shape = [length - 1, alternatives];
    const ids = new Int32Array((length - 1) * alternatives);
    const scored = new Float32Array(ids.length);
    // Top-k and top-p do not apply here: the draws are from the model's distribution at the temperature.
    const draw = { temperature: choice.temperature, topK: -1, topP: 1 };
    for (let index = 0; index < ids.length; index++) {
      const { logits, total } = rowBefore(Math.floor(index / alternatives) + 1);
      const token = chooseToken(logits, draw, random);
      ids[index] = token;
      scored[index] = logits[token]! - total;
    }
    scores.promptAltTokens = {
      tokens: { dtype: 'int64', data: ids, shape },
      logprobs: { dtype: 'float32', data: scored, shape },
    };
  }
  return scores;
}

/** Logprobs of the ids named, in the tensor's own layout; 0 where −1 was given. */
function scoreTargets(targets: EngineTensor, rowBefore: (position: number) => LogitRow): EngineTensor {
  const columns = targets.shape[1]!;
  const data = new Float32Array(targets.data.length);
  let row = 0;
  for (let index = 0; index < data.length; index++) {
    if (targets.sparse === undefined) row = Math.floor(index / columns);
    else while (targets.sparse.crowIndices[row + 1]! <= index) row++;
    const token = targets.data[index]!;
    if (token < 0) continue;
    const { logits, total } = rowBefore(row + 1);
    data[index] = logits[token]! - total;
  }
  return {
    dtype: 'float32',
    data,
    shape: targets.shape,
    ...(targets.sparse === undefined ? {} : { sparse: targets.sparse }),
  };
}
