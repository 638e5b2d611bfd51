import * as t from 'io-ts';
import { ModelInputCodec } from './modelInput.js';
import {
  Floats,
  Integer,
  numberType,
  NonNegative,
  NonNegativeInteger,
  PositiveInteger,
  Probability,
  Tokens,
} from './number.js';
import { optional, request, response, withDefault } from './record.js';
import { TensorDataCodec, TensorResultCodec, type TensorData } from './tensor.js';
import type * as types from './modelTypes.js';

/** Why a sample ended: `length` (`maxTokens` reached or the context is full) or `stop` (a stop string or token). */
export const StopReason = t.union([t.literal('length'), t.literal('stop')], "'length' | 'stop'");
export type StopReason = t.TypeOf<typeof StopReason>;

const TopK = numberType('an integer ≥ 1, or -1 for all tokens', (n) => Number.isSafeInteger(n) && (n === -1 || n >= 1));

const StopList = t.union([t.array(t.string), t.array(NonNegativeInteger)]);
/** Always sent as a list. Some clients send a bare text, which reads as a list of one. */
const Stop = new t.Type<t.TypeOf<typeof StopList>>(
  'a list of strings or of token ids',
  (u): u is t.TypeOf<typeof StopList> => StopList.is(u),
  (u, context) => {
    const list = typeof u === 'string' ? [u] : u;
    return StopList.is(list) ? t.success(list) : t.failure(u, context);
  },
  t.identity,
);

/** How to sample. Without `stop` the model's own end token stops; with `[]` nothing does. */
export const SamplingParams = request('SamplingParams', {
  max_tokens: optional(PositiveInteger),
  seed: optional(Integer),
  stop: optional(Stop),
  temperature: withDefault(NonNegative, 1),
  top_k: withDefault(TopK, -1),
  top_p: withDefault(Probability, 1),
});
export interface SamplingParams {
  /** Maximum tokens to sample. Default: as many as the context has room for. */
  readonly maxTokens?: number | undefined;
  /** Seed, to sample the same tokens again if the service supports it. Default: none. */
  readonly seed?: number | undefined;
  /** Strings or token ids that end a sample. Absent: the model's own end token; `[]`: nothing. */
  readonly stop?: readonly string[] | readonly number[] | string | undefined;
  /** Randomness: a number ≥ 0; 0 always picks the likeliest token. Default 1. */
  readonly temperature?: number | undefined;
  /** Sample among the k most likely tokens only. Default −1: all tokens. */
  readonly topK?: number | undefined;
  /** Sample among the likeliest tokens that together have this probability. Default 1: all tokens. */
  readonly topP?: number | undefined;
}

const SAMPLE_FIELDS = {
  num_samples: withDefault(PositiveInteger, 1),
  sampling_params: SamplingParams,
  base_model: optional(t.string),
  model_path: optional(t.string),
  sampling_session_id: optional(t.string),
  seq_id: optional(NonNegativeInteger),
  prompt_logprobs: optional(t.boolean),
  topk_prompt_logprobs: withDefault(NonNegativeInteger, 0),
  topk_sample_logprobs: withDefault(NonNegativeInteger, 0),
  target_prompt_logprobs: optional(TensorDataCodec),
  prompt_alt_tokens_k: withDefault(NonNegativeInteger, 0),
  prompt_logprobs_last_n: optional(PositiveInteger),
  record_stability_info: optional(t.boolean),
  type: withDefault(t.literal('sample'), 'sample'),
};
export const SampleRequest = request('SampleRequest', { ...SAMPLE_FIELDS, prompt: ModelInputCodec });
/** All of it but the prompt, which a client writes separately, and late: it is most of the bytes. */
export const SampleRequestWithoutPrompt = request('SampleRequest', SAMPLE_FIELDS);
export type SampleRequest = t.TypeOf<typeof SampleRequest>;

/** The k most likely tokens at each of `length` positions, row by row; an empty cell is (0, −99999). */
export interface TopkLogprobs {
  /** Token ids, `length` rows of `k`, the likeliest first. */
  readonly tokenIds: Int32Array;
  /** Natural-log probabilities in the same layout. */
  readonly logprobs: Float32Array;
  /** Entries per position. */
  readonly k: number;
  /** Number of positions. */
  readonly length: number;
}
const EMPTY_TOPK_LOGPROB = -99999;

/** One sampled continuation of the prompt. */
export interface SampledSequence {
  /** Why it ended: `length` or `stop`. */
  readonly stopReason: StopReason;
  /** The sampled token ids, without the prompt; a stop token is included. */
  readonly tokens: Int32Array;
  /** Natural-log probability of each sampled token, one per token. Absent if the service sent none. */
  readonly logprobs?: Float32Array;
  /** The likeliest tokens at each sampled position, if `topkSampleLogprobs` asked for them. */
  readonly topkLogprobs?: TopkLogprobs;
  /** The service's id for this sequence, if it gives one; training data can refer to it. */
  readonly sequenceId?: string;
}

/** The samples of one prompt. */
export interface SampleResponse {
  /** The samples: `numSamples` of them. */
  readonly sequences: readonly SampledSequence[];
  /** Natural-log probability of each prompt token, one per token; NaN if there is none, as for the first. */
  readonly promptLogprobs?: Float32Array;
  /** The likeliest tokens at each prompt position, if `topkPromptLogprobs` asked for them. */
  readonly topkPromptLogprobs?: TopkLogprobs;
  /** Logprobs of the tokens that `targetPromptLogprobs` named. */
  readonly targetPromptLogprobs?: TensorData;
  /** Alternative tokens at each prompt position, if `promptAltTokensK` asked for them. */
  readonly promptAltTokens?: PromptAltTokens;
  /** Prompt tokens that came from the service's prefix cache. */
  readonly promptCacheHitTokens: number;
}
/** Tokens drawn beside the prompt's own: two [prompt length − 1, k] tensors. */
export interface PromptAltTokens {
  /** The token ids. */
  readonly tokens: TensorData;
  /** Natural-log probability of each of them. */
  readonly logprobs: TensorData;
}

type TopkRows = readonly (readonly (readonly [number, number | null])[] | null)[];
/** Rows may differ in length: a single long one must not make a table that fills the memory. */
const MOST_CELLS = 2 ** 26;

/** Rows of [token, logprob] pairs, as JSON servers send them, in one dense pair of arrays. @throws RangeError */
export function topkFromRows(rows: TopkRows): TopkLogprobs {
  let k = 0;
  for (const row of rows) if (row !== null && row.length > k) k = row.length;
  if (rows.length * k > MOST_CELLS) throw new RangeError(`${rows.length} rows of up to ${k} pairs are too many`);
  const tokenIds = new Int32Array(rows.length * k);
  const logprobs = new Float32Array(rows.length * k).fill(EMPTY_TOPK_LOGPROB);
  for (let index = 0; index < rows.length; index++) {
    const row = rows[index]!;
    if (row === null) continue;
    for (let column = 0; column < row.length; column++) {
      const pair = row[column]!;
      tokenIds[index * k + column] = pair[0];
      logprobs[index * k + column] = pair[1] ?? NaN;
    }
  }
  return { tokenIds, logprobs, k, length: rows.length };
}

const isPair = (u: unknown): boolean =>
  Array.isArray(u) &&
  u.length === 2 &&
  Number.isSafeInteger(u[0]) &&
  ((typeof u[1] === 'number' && Number.isFinite(u[1])) || u[1] === null);

/** Where the first thing is that is no row of pairs, as a path; undefined if there is none. */
function firstNoPair(rows: readonly unknown[]): string | undefined {
  for (let index = 0; index < rows.length; index++) {
    const row = rows[index];
    if (row === null) continue;
    if (!Array.isArray(row)) return String(index);
    for (let column = 0; column < row.length; column++) if (!isPair(row[column])) return `${index}.${column}`;
  }
  return undefined;
}

/** Rows of [token, logprob] pairs, as JSON servers send them: empty cells are left out, a position without any is null. */
export function topkToRows({ tokenIds, logprobs, k, length }: TopkLogprobs): ([number, number][] | null)[] {
  return Array.from({ length }, (_, row) => {
    const cells: [number, number][] = [];
    for (let column = row * k; column < (row + 1) * k; column++) {
      if (logprobs[column] !== EMPTY_TOPK_LOGPROB) cells.push([tokenIds[column]!, logprobs[column]!]);
    }
    return cells.length > 0 ? cells : null;
  });
}

const Topk: t.Type<TopkLogprobs, unknown> = new t.Type<TopkLogprobs, unknown>(
  'rows of [token, logprob]',
  (u): u is TopkLogprobs => typeof u === 'object' && u !== null && 'tokenIds' in u,
  (u, context) => {
    if (!Array.isArray(u)) return t.failure(u, context);
    const bad = firstNoPair(u);
    if (bad !== undefined) return t.failure(u, context, `entry ${bad} is not a [token, logprob] pair`);
    try {
      return t.success(topkFromRows(u as TopkRows));
    } catch (error) {
      return t.failure(u, context, (error as Error).message);
    }
  },
  topkToRows,
);

const SampledSequenceJson = response('SampledSequence', {
  stop_reason: StopReason,
  tokens: Tokens,
  logprobs: optional(Floats),
  topk_logprobs: optional(Topk),
  sequence_id: optional(t.string),
});

/** A sample as JSON servers answer it. */
export const SampleResponseJson = response('SampleResponse', {
  sequences: t.array(SampledSequenceJson),
  prompt_logprobs: optional(Floats),
  topk_prompt_logprobs: optional(Topk),
  target_prompt_logprobs: optional(TensorResultCodec),
  prompt_alt_tokens: optional(response('PromptAltTokens', { tokens: TensorResultCodec, logprobs: TensorResultCodec })),
  prompt_cache_hit_tokens: withDefault(NonNegativeInteger, 0),
});

export const CreateSamplingSessionRequest = request('CreateSamplingSessionRequest', {
  session_id: t.string,
  sampling_session_seq_id: NonNegativeInteger,
  base_model: optional(t.string),
  model_path: optional(t.string),
  type: withDefault(t.literal('create_sampling_session'), 'create_sampling_session'),
});
export const CreateSamplingSessionResponse = response('CreateSamplingSessionResponse', {
  sampling_session_id: t.string,
});

export const JoinSamplingSessionRequest = request('JoinSamplingSessionRequest', {
  sampling_session_id: t.string,
  type: withDefault(t.literal('join_sampling_session'), 'join_sampling_session'),
});
export const JoinSamplingSessionResponse = response('JoinSamplingSessionResponse', {
  client_counter: NonNegativeInteger,
});

export const GetSamplerResponse = response('GetSamplerResponse', {
  sampler_id: t.string,
  base_model: t.string,
  model_path: optional(t.string),
  tokenizer_id: optional(t.string),
});
export type GetSamplerResponse = types.GetSamplerResponse;
