import { concatMap, forkJoin, map, type Observable, of, type OperatorFunction, toArray } from 'rxjs';
import type { Renderer, TrainOn } from '../../chat/renderers/core/Renderer.js';
import { cancelling } from '../../support/cancelling.js';
import type { Sampleable } from '../../operators/sampling/sampleFrom.js';
import { toDatums, type ToDatumsOptions } from '../../operators/data/toDatums.js';
import { scoreDatum, type DatumScore } from './internal/scoreDatum.js';
import { type Measured, recordEach } from './internal/recordEach.js';
import type { EvalRecord, ScoringOptions } from './record.js';

/** Options of `likelihood`. */
export interface LikelihoodOptions extends ScoringOptions, Pick<ToDatumsOptions<TrainOn>, 'trainOn'> {
  /** Whose predictions are measured. */
  readonly sampler: Sampleable;
  /** Writes conversations as tokens. */
  readonly renderer: Renderer;
  /** Whether the likeliest token of every position is asked for, too, for `accuracy`. Default true. */
  readonly accuracy?: boolean;
}

/**
 * Measures how well a model predicts conversations: a record for each, as they finish, with `logprob` (per token, what counts)
 * and `accuracy` as scores.
 *
 * ```ts
 * fromConversations('held-out.jsonl').pipe(likelihood({ sampler, renderer }), summarize())
 * ```
 * Nothing is sampled but one token per row, which the protocol demands. Measured is what would be trained on: the last turn of the
 * assistant, or what `trainOn` says, its end mark included; bits per byte leave the end mark out, which has no text. The summary's `corpus` has negative log
 * likelihood, bits per byte, perplexity and accuracy over all tokens together.
 *
 * A row that cannot be written or scored is a failure of that record, or what `onFailure` says. A refused key, a closed client and
 * errors of the source end the stream. Unsubscribing cancels
 * what is in flight. Holds the rows in flight, and ids.
 */
export function likelihood(options: LikelihoodOptions): OperatorFunction<unknown, EvalRecord> {
  const { renderer, sampler, trainOn, accuracy = true } = options;
  const measure = (row: unknown): Observable<readonly DatumScore[]> =>
    of(row).pipe(
      toDatums(renderer, { onFailure: 'fail', ...(trainOn === undefined ? {} : { trainOn }) }),
      toArray(),
      concatMap((datums) =>
        forkJoin(
          datums.map((datum) =>
            scoreDatum(datum, { renderer, accuracy, sample: (asked) => cancelling(sampler.sample(asked)) }),
          ),
        ),
      ),
    );
  return recordEach(options, (row) => measure(row).pipe(map(sampleOf)));
}

function sampleOf(parts: readonly DatumScore[]): Measured {
  const sum = (name: keyof DatumScore) => parts.reduce((total, part) => total + part[name], 0);
  const [nll, tokens, textNll, bytes, correct] = [
    sum('nll'),
    sum('tokens'),
    sum('textNll'),
    sum('bytes'),
    sum('correct'),
  ];
  const scores = {
    logprob: -nll / tokens,
    ...(Number.isNaN(correct) ? {} : { accuracy: correct / tokens }),
  };
  return {
    ...{ output: '', score: scores.logprob, scores, metrics: { nll, tokens, textNll, bytes, correct } },
    ...{ promptTokens: sum('promptTokens'), stopReason: 'scored' },
  };
}
