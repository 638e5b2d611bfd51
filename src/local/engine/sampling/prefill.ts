import type { Heap } from '../numeric/heap.js';
import { floatsPerPosition, KvCache } from '../model/kvCache.js';
import { headRows } from '../model/tapeMemory.js';
import type { LogitRow } from './logitRow.js';
import type { Prefix, PrefixCache } from './prefixCache.js';
import type { CheckedSample } from './sampleRequest.js';
import type { Sampler } from './sampler.js';
import { firstScored, scorePrompt, type PromptScores } from './scorePrompt.js';

/** Shared tokens from which on the rest is computed alone. */
const WORTHWHILE = 16;
/** Positions reserved after the prompt; caches double as they fill. */
const FIRST_ROOM = 64;

/** A prompt ready to be sampled from. */
export interface Prefilled {
  readonly prefix: Prefix;
  readonly scores: PromptScores;
  /** Tokens of the prompt that were computed for an earlier request. */
  readonly hits: number;
}

/** Computes a prompt, or what of it no earlier prompt of the sampler has in common with it, and answers the questions about it. */
export function prefill(
  heap: Heap,
  prefixes: PrefixCache,
  sampler: Sampler,
  request: CheckedSample,
  seed: number,
): Prefilled {
  const { transformer } = sampler;
  const { shape } = transformer.base;
  const { prompt, limit } = request;
  const { length } = prompt;
  // The row before the first scored position is the first whose logits are needed.
  const from = Math.min(firstScored(request), length) - 1;
  const found = prefixes.find(sampler, prompt);
  if (from === length - 1 && found?.shared === length && found.prefix.prompt.length === length) {
    return { prefix: found.prefix, scores: {}, hits: length };
  }
  const shared = Math.min(found?.shared ?? 0, from);
  const hits = shared < WORTHWHILE ? 0 : shared;
  const room = length + Math.min(limit, FIRST_ROOM);
  const cache = hits === 0 ? new KvCache(heap, shape, room) : found!.prefix.cache.fork(room, hits);
  try {
    const adapter = sampler.adapter();
    const { normed } = transformer.forward(prompt.subarray(hits), adapter, { cache });
    const mark = heap.mark();
    let [first, end] = [0, 0];
    let rows: readonly LogitRow[] = [];
    const row = (position: number): LogitRow => {
      if (position < first || position >= end) {
        heap.release(mark);
        [first, end] = [position, Math.min(length, position + headRows(shape))];
        const at = normed + (position - hits) * shape.width;
        const { logits } = transformer.head(at, end - first, adapter);
        rows = logitRows(heap, logits, end - first, shape.vocabulary);
      }
      return rows[position - first]!;
    };
    // In order, so that rows are computed many at a time; the last one is needed after all others.
    const scores = scorePrompt(request, seed, (position) => row(position - 1));
    const { logits, total } = row(length - 1);
    const floats = floatsPerPosition(shape) * cache.capacity + logits.length;
    const prefix = { sampler, prompt, cache, floats, first: { logits: logits.slice(), total }, users: 0 };
    return { prefix, scores, hits };
  } catch (error) {
    cache.dispose();
    throw error;
  }
}

/** Rows of logits as they are in the heap: valid until its scratch memory is given back. */
export function logitRows(heap: Heap, logits: number, rows: number, vocabulary: number): LogitRow[] {
  const totals = heap.logSumExp(rows, logits, vocabulary);
  return Array.from(totals, (total, row) => {
    const at = logits + row * vocabulary;
    return { logits: heap.floats.subarray(at, at + vocabulary), total };
  });
}
