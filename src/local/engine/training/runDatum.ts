import type { PreparedLoss } from './losses.js';
import type { ResidentAdapter } from '../model/residentAdapter.js';
import { headRows } from '../model/tapeMemory.js';
import type { SequenceTape, Transformer } from '../model/transformer.js';
import { targetLogprobs, targetLogprobsBackward } from './targets.js';
import type { Steps } from '../thread/breathe.js';

/** A datum that was checked. */
export interface PreparedDatum {
  readonly tokens: Int32Array;
  readonly targets: Int32Array;
  readonly k: number;
  readonly shape: readonly number[];
  readonly loss: PreparedLoss;
}

/** A pass over one datum: its loss and logprobs. With `tapeFloats` also adds its gradients to the adapter's. */
export function* runDatum(
  transformer: Transformer,
  datum: PreparedDatum,
  adapter: ResidentAdapter,
  tapeFloats: number | undefined,
): Steps<{ readonly loss: number; readonly logprobs: Float32Array }> {
  const { heap } = transformer;
  const mark = heap.mark();
  try {
    const options = tapeFloats === undefined ? {} : { tapeFloats };
    const tape = yield* transformer.forwardInSteps(datum.tokens, adapter, options);
    const logprobs = new Float32Array(datum.targets.length);
    const forwardOnly = tapeFloats === undefined;
    // Where the derivative of a token needs the logprobs of others, those come first, and logits are computed twice.
    if (forwardOnly || datum.loss.wholeSequence === true) yield* runHead(transformer, datum, tape, adapter, logprobs);
    if (!forwardOnly) {
      const isNeeded = yield* runHead(transformer, datum, tape, adapter, logprobs, (from, to) =>
        datum.loss(logprobs).gradient.subarray(from, to),
      );
      if (isNeeded) yield* transformer.backwardInSteps(tape, adapter);
    }
    return { loss: datum.loss(logprobs).loss, logprobs };
  } finally {
    heap.release(mark);
  }
}

/**
 * Fills in the logprobs of the targets, a few rows at a time: never are there logits of all. With `gradientOf` also takes the loss
 * back through the head; returns whether any derivative was not zero.
 */
function* runHead(
  transformer: Transformer,
  { tokens, targets, k }: PreparedDatum,
  tape: SequenceTape,
  adapter: ResidentAdapter,
  logprobs: Float32Array,
  gradientOf?: (from: number, to: number) => Float32Array,
): Steps<boolean> {
  const { heap, base } = transformer;
  const { vocabulary, width } = base.shape;
  const [most, total] = [headRows(base.shape), tokens.length];
  let isNeeded = false;
  for (let from = 0; from < total; from += most) {
    const rows = Math.min(most, total - from);
    const mark = heap.mark();
    const { logits, low } = transformer.head(tape.normed + from * width, rows, adapter);
    const wanted = targets.subarray(from * k, (from + rows) * k);
    const scored = targetLogprobs(heap, logits, rows, vocabulary, wanted, k);
    logprobs.set(scored.logprobs, from * k);
    yield;
    const gradient = gradientOf?.(from * k, (from + rows) * k);
    if (gradient?.some((value) => value !== 0) === true) {
      isNeeded = true;
      targetLogprobsBackward(heap, logits, rows, vocabulary, wanted, k, scored.totals, gradient);
      transformer.headBackward(tape, from, rows, low, logits, adapter);
      yield;
    } else if (gradient !== undefined) {
      const at = tape.dNormed + from * width;
      heap.floats.fill(0, at, at + rows * width);
    }
    heap.release(mark);
  }
  return isNeeded;
}
