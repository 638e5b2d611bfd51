import { concatMap, type OperatorFunction } from 'rxjs';
import { datumFromExample, type DatumOptions } from '../../chat/datum/datumFromExample.js';
import { checkRenderer } from '../../support/checks.js';
import { originOf } from '../../support/rows/rowOrigin.js';
import { toPreference } from '../../chat/data/toPreference.js';
import type { Datum } from '../../wire/datum.js';
import { ValidationError } from '../../wire/tinkerError.js';
import { declareTools } from './internal/declareTools.js';
import type { SupervisedRenderer } from './toDatums.js';

/** The datum of the preferred answer, then that of the other one. */
export type Pair = readonly [chosen: Datum, rejected: Datum];

/** Options of `toPairs`. */
export interface ToPairsOptions {
  /** Positions of each sequence that are kept, at least 2, counted from the left. Default: all. */
  readonly maxLength?: number;
}

/**
 * Renders preferences into pairs of datums; the weights are 1 on the last message of each side and 0 before it.
 *
 * ```
 * source    -a---b----|
 * result    -x---y----|            x = [chosen of a, rejected of a]
 * ```
 * ```ts
 * fromPreferences('pairs.jsonl').pipe(toPairs(renderer), batch({ size: 64 }), map((pairs) => pairs.flat()))
 * ```
 * Takes what `fromPreferences` gives, and rows in any form that {@link toPreference} knows. Tools beside the messages are declared in the
 * renderer's own words. A row of no known form, what
 * the renderer cannot write, and an answer of which nothing is left within `maxLength`, are errors and end the stream, with
 * file and line where the row came from a file; a source with `onBadRow: 'skip'` skips those, too. Completes with the source.
 * Holds nothing.
 */
export function toPairs<M, O>(
  renderer: SupervisedRenderer<M, O>,
  { maxLength }: ToPairsOptions = {},
): OperatorFunction<unknown, Pair> {
  checkRenderer('toPairs', renderer);
  if (maxLength !== undefined && !(maxLength >= 2)) throw new RangeError(`maxLength must be >= 2, got ${maxLength}`);
  const options: DatumOptions = { reduction: 'none', ...(maxLength === undefined ? {} : { maxLength }) };
  function pairOf(row: unknown, place: number): Pair {
    const preference = preferenceOf(row, place);
    const side = (which: 'chosen' | 'rejected'): Datum => {
      const messages = declareTools(renderer, preference[which], preference.tools);
      // Where a conversation needs several examples, the last one has the last message.
      const example = renderer.buildSupervisedExamples(messages as readonly M[]).at(-1);
      if (example === undefined) throw new ValidationError(`pair ${place}: ${which} gave nothing to train on`);
      const datum = datumFromExample(example, options);
      if (!hasWeight(datum))
        throw new ValidationError(
          `pair ${place}: nothing of the ${which} answer is left${maxLength === undefined ? '' : ` within ${maxLength} tokens`}`,
        );
      return datum;
    };
    return [side('chosen'), side('rejected')];
  }

  return (source) =>
    source.pipe(
      concatMap((row, place): readonly Pair[] => {
        const origin = originOf(row);
        try {
          return [pairOf(row, place)];
        } catch (cause) {
          if (origin === undefined) throw cause;
          origin.skip(origin.line, cause instanceof Error ? cause.message : String(cause), cause);
          return [];
        }
      }),
    );
}

function preferenceOf(row: unknown, place: number) {
  try {
    return toPreference(row);
  } catch (cause) {
    throw new ValidationError(`pair ${place}: ${(cause as Error).message}`, { cause });
  }
}

const hasWeight = ({ lossFnInputs }: Datum): boolean => {
  const weights = lossFnInputs['weights'] as { readonly data: Float32Array };
  return weights.data.some((weight) => weight !== 0);
};
