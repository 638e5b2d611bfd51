import { concatMap, type OperatorFunction } from 'rxjs';
import { decisionPrompt, type DecisionOptions, labelOf } from '../../chat/datum/decisionRow.js';
import { datumFromExample } from '../../chat/datum/datumFromExample.js';
import { type LabelInput, labelShares, labelTokens } from '../../chat/datum/labels.js';
import { originOf } from '../../support/rows/rowOrigin.js';
import type { Datum } from '../../wire/datum.js';
import type { ModelInput } from '../../wire/modelInput.js';
import { TensorData } from '../../wire/tensor.js';

/** Options of `toDecisions`. */
export interface ToDecisionsOptions<P> extends DecisionOptions<P> {
  /**
   * The label of a row, or the share of each label. Default: its `label`, which may be an object of shares, or its `expected`, `answer` or
   * `target`, or its last message, of the assistant.
   */
  readonly label?: (row: P) => LabelInput | undefined;
}

/**
 * Renders rows with labels into datums that train what `decide` asks: the first token of the label, where the answer starts.
 *
 * ```
 * source    -a---b----|
 * result    -x---y----|            all weight of x is on its last position
 * ```
 * ```ts
 * rows.pipe(toDecisions({ renderer, labels: ['yes', 'no'] }), batch({ size: 32 }), train(trainer, { loss: 'cross_entropy' }))
 * ```
 * A label is text, or shares such as `{ yes: 0.8, no: 0.2 }`: votes of several people, or a larger model's probabilities. The labels are checked
 * at the call. A row that cannot be asked, or whose label is not listed, ends the stream with an error, with file and line where it came from
 * a file; a source with `onBadRow: 'skip'` skips it. Completes with the source. Holds nothing.
 */
export function toDecisions<P = unknown>(options: ToDecisionsOptions<P>): OperatorFunction<P, Datum> {
  const { renderer, labels, label = labelOf } = options;
  const tokens = labelTokens(renderer, labels);
  const datumOf = (row: P): Datum => {
    const shares = labelShares(label(row), labels);
    const prompt = decisionPrompt(row, options);
    const certain = shares.indexOf(1);
    return certain < 0 ? softDatum(prompt, tokens, shares) : hardDatum(prompt, tokens[certain]!);
  };
  return (source) =>
    source.pipe(
      concatMap((row): readonly Datum[] => {
        const origin = originOf(row);
        try {
          return [datumOf(row)];
        } catch (cause) {
          if (origin === undefined) throw cause;
          origin.skip(origin.line, cause instanceof Error ? cause.message : String(cause), cause);
          return [];
        }
      }),
    );
}

/** One target per position, which every service trains. */
function hardDatum(prompt: ModelInput, token: number): Datum {
  const modelInput = prompt.appendInt(token);
  const weights = new Float32Array(modelInput.length);
  weights[weights.length - 1] = 1;
  return datumFromExample({ modelInput, weights });
}

/** As many targets per position as there are labels, weighted in the last row only. */
function softDatum(modelInput: ModelInput, tokens: Int32Array, shares: readonly number[]): Datum {
  const shape = [modelInput.length, tokens.length];
  const targets = new Int32Array(shape[0]! * shape[1]!);
  const weights = new Float32Array(targets.length);
  targets.set(tokens, targets.length - tokens.length);
  weights.set(shares, weights.length - shares.length);
  return {
    modelInput,
    lossFnInputs: {
      target_tokens: new TensorData({ dtype: 'int64', data: targets, shape }).toSparse(),
      weights: new TensorData({ dtype: 'float32', data: weights, shape }).toSparse(),
    },
  };
}
