import { checkAtLeast } from '../../support/checks.js';
import { chunkLength, type ModelInputChunk } from '../../wire/chunk.js';
import type { Datum, ProvenanceSpan } from '../../wire/datum.js';
import { ModelInput } from '../../wire/modelInput.js';
import type { SampledSequence } from '../../wire/sampling.js';
import { TensorData } from '../../wire/tensor.js';
import { ValidationError } from '../../wire/tinkerError.js';
import { joinText, remainderAfter, shiftChunks, truncateChunks } from './chunks.js';

/** One prompt and what was sampled for it. */
export interface SampledTurn {
  /** What was sampled from. */
  readonly prompt: ModelInput;
  /** What was sampled. */
  readonly sequence: SampledSequence;
  /** Advantage of its tokens: one for all, or one each. Default: the episode's. 0 takes no part in training. */
  readonly advantage?: number | ArrayLike<number>;
  /** Whether its tokens take no part in training: their advantage and their `sequence_ratio_mask` are 0. Default false. */
  readonly masked?: boolean;
}

/** Options of `datumsFromTurns`. */
export interface TurnDatumOptions {
  /** Advantage of every turn that does not carry one. Default 0. */
  readonly advantage?: number;
  /** Positions of a whole sequence that are kept, at least 2. Default: all. */
  readonly maxLength?: number;
  /** Say which tokens come from which sampled sequence, where all turns know theirs. Default true. */
  readonly provenance?: boolean;
  /** Add `sequence_ratio_mask`, which gspo needs: 1 on sampled tokens that are trained on. Default false. */
  readonly sequenceRatioMask?: boolean;
}

/** A sequence in the making, unshifted: row i belongs to position i. */
interface Draft {
  chunks: ModelInputChunk[];
  logprobs: number[];
  advantages: number[];
  mask: number[];
  spans: ProvenanceSpan[];
}

const emptyDraft = (): Draft => ({ chunks: [], logprobs: [], advantages: [], mask: [], spans: [] });

/**
 * Training datums of sampled turns, for importance_sampling, ppo, cispo and the like: `target_tokens`, `logprobs`, `advantages`, the latter 0 on
 * what was not sampled.
 *
 * A turn whose prompt extends the sequence so far (its prompts, its samples) continues in the same datum; any other starts a new one.
 *
 * @throws ValidationError for a sequence without logprobs, or if the number of advantages differs from the number of tokens
 */
export function datumsFromTurns(turns: readonly SampledTurn[], options: TurnDatumOptions = {}): Datum[] {
  const { advantage: shared = 0, maxLength = Infinity } = options;
  checkAtLeast({ maxLength }, 2);
  const hasProvenance = (options.provenance ?? true) && turns.every(({ sequence }) => Boolean(sequence.sequenceId));
  const drafts: Draft[] = [];
  for (const { prompt, sequence, advantage = shared, masked = false } of turns) {
    let draft = drafts.at(-1);
    let rest: readonly ModelInputChunk[] | undefined =
      draft === undefined ? undefined : remainderAfter(draft.chunks, prompt.chunks);
    if (draft === undefined || rest === undefined) {
      drafts.push((draft = emptyDraft()));
      rest = prompt.chunks;
    }
    append(draft, rest, sequence, masked ? 0 : advantage, masked ? 0 : 1);
  }
  return drafts.map((draft) => finish(draft, maxLength, hasProvenance, options.sequenceRatioMask ?? false));
}

/** {@link datumsFromTurns} of a single turn. */
export function datumFromSequence(
  prompt: ModelInput,
  sequence: SampledSequence,
  options: TurnDatumOptions = {},
): Datum {
  return datumsFromTurns([{ prompt, sequence }], options)[0]!;
}

function append(
  draft: Draft,
  observation: readonly ModelInputChunk[],
  { tokens, logprobs, sequenceId = '' }: SampledSequence,
  advantage: number | ArrayLike<number>,
  mask: 0 | 1,
): void {
  const { length } = tokens;
  if (logprobs === undefined || logprobs.length !== length) {
    throw new ValidationError(
      `a sampled sequence of ${length} tokens needs as many logprobs, got ${logprobs?.length ?? 'none'}`,
    );
  }
  const advantages = typeof advantage === 'number' ? new Array<number>(length).fill(advantage) : Array.from(advantage);
  if (advantages.length !== length) {
    throw new ValidationError(
      `a sampled sequence of ${length} tokens needs as many advantages, got ${advantages.length}`,
    );
  }
  const observed = observation.reduce((sum, chunk) => sum + chunkLength(chunk), 0);
  const offset = draft.mask.length;
  draft.chunks = joinText([...draft.chunks, ...observation, { type: 'encoded_text', tokens }]);
  for (let row = 0; row < observed; row++) addRow(draft, 0, 0, 0);
  for (let row = 0; row < length; row++) addRow(draft, logprobs[row]!, advantages[row]!, mask);
  draft.spans.push(
    { type: 'prompt', sequenceId, offset, length: observed },
    { type: 'sampled', sequenceId, offset: 0, length },
  );
}

function addRow({ logprobs, advantages, mask }: Draft, logprob: number, advantage: number, isTrained: 0 | 1): void {
  logprobs.push(logprob);
  advantages.push(advantage);
  mask.push(isTrained);
}

function finish(draft: Draft, maxLength: number, hasProvenance: boolean, hasMask: boolean): Datum {
  const { chunks, targets } = shiftChunks(truncateChunks(draft.chunks, maxLength));
  const { length } = targets;
  const rows = (values: number[]): TensorData =>
    TensorData.from(Float32Array.from(values.slice(1, length + 1)), 'float32');
  const spans = joinSpans(draft.spans);
  return {
    modelInput: new ModelInput(chunks),
    lossFnInputs: {
      target_tokens: TensorData.from(targets, 'int64'),
      logprobs: rows(draft.logprobs),
      advantages: rows(draft.advantages),
      ...(hasMask ? { sequence_ratio_mask: rows(draft.mask) } : {}),
    },
    ...(hasProvenance
      ? { modelInputSpans: cutSpans(spans, 0, length), lossFnInputSpans: cutSpans(spans, 1, length) }
      : {}),
  };
}

/** Runs that follow each other in the same prompt or the same sample, made one; empty ones dropped. */
function joinSpans(spans: readonly ProvenanceSpan[]): ProvenanceSpan[] {
  const joined: ProvenanceSpan[] = [];
  for (const span of spans) {
    if (span.length === 0) continue;
    const last = joined.at(-1);
    const goesOn =
      last?.type === span.type &&
      last.sequenceId === span.sequenceId &&
      (last.offset ?? 0) + last.length === (span.offset ?? 0);
    if (goesOn) joined[joined.length - 1] = { ...last, length: last.length + span.length };
    else joined.push(span);
  }
  return joined;
}

/** The runs of positions `start` to `start + length` of what the given runs tile. */
function cutSpans(spans: readonly ProvenanceSpan[], start: number, length: number): ProvenanceSpan[] {
  const cut: ProvenanceSpan[] = [];
  let at = 0;
  for (const span of spans) {
    const from = Math.max(start, at);
    const to = Math.min(start + length, at + span.length);
    if (to > from) cut.push({ ...span, offset: (span.offset ?? 0) + from - at, length: to - from });
    at += span.length;
  }
  return cut;
}
