import { map, of, type OperatorFunction } from 'rxjs';
import { labelOf } from '../../chat/datum/decisionRow.js';
import { labelShares } from '../../chat/datum/labels.js';
import { decide, type Decision } from '../../operators/sampling/decide.js';
import type { Sampleable } from '../../operators/sampling/sampleFrom.js';
import type { ToDecisionsOptions } from '../../operators/data/toDecisions.js';
import { type Measured, recordEach } from './internal/recordEach.js';
import type { EvalRecord, ScoringOptions } from './record.js';

/** Options of `decisions`. */
export interface DecisionsOptions<P> extends ToDecisionsOptions<P>, ScoringOptions {
  /** Whose decisions are measured. */
  readonly sampler: Sampleable;
}

/**
 * Measures how well a model decides between labels, in one request per row: a record for each, as they finish.
 *
 * ```ts
 * rows.pipe(decisions({ sampler, renderer, labels: ['yes', 'no'] }), summarize())
 * ```
 * The score that counts is `accuracy`: 1 if the likeliest label is the row's, else 0. Beside it `logprob` (of the right label among the
 * labels, in nats) and `brier` (the mean squared error of the probabilities times −1, so that more is better). Where a row has shares, its
 * likeliest label is the right one, and the other two are measured against the shares. The summary's `decisions` has the calibration error and
 * the table of thresholds.
 *
 * A row that cannot be asked, or has no label, is a failure of that record, or what `onFailure` says. A refused key, a closed client and
 * errors of the source end the stream. Unsubscribing cancels
 * what is in flight. Holds the rows in flight, and ids.
 */
export function decisions<P = unknown>(options: DecisionsOptions<P>): OperatorFunction<P, EvalRecord> {
  const { sampler, labels, label = labelOf, renderer, system, ask } = options;
  const asks = decide<P, Sampleable>(sampler, {
    ...{ renderer, labels },
    ...(system === undefined ? {} : { system }),
    ...(ask === undefined ? {} : { ask }),
  });
  return recordEach<P>(options, (row) => {
    const shares = labelShares(label(row), labels);
    return of(row).pipe(
      asks,
      map((decision) => sampleOf(decision, labels, shares)),
    );
  });
}

function sampleOf(decision: Decision<unknown>, labels: readonly string[], shares: readonly number[]): Measured {
  const { label, confidence, mass, probabilities, promptTokens } = decision;
  const accuracy = labels[shares.indexOf(Math.max(...shares))] === label ? 1 : 0;
  const sum = (term: (probability: number, share: number) => number) =>
    labels.reduce((total, name, place) => total + term(probabilities[name]!, shares[place]!), 0);
  return {
    output: label,
    score: accuracy,
    scores: {
      accuracy,
      // A share of nothing adds nothing, however unlikely its label is.
      logprob: sum((probability, share) =>
        share === 0 ? 0 : share * Math.log(Math.max(probability, Number.MIN_VALUE)),
      ),
      brier: -sum((probability, share) => (probability - share) ** 2),
    },
    metrics: { confidence, mass },
    ...{ promptTokens, stopReason: 'decided' },
  };
}
