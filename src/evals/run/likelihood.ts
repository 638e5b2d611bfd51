import {
  asyncScheduler,
  catchError,
  concatMap,
  defer,
  EMPTY,
  forkJoin,
  map,
  type Observable,
  of,
  type OperatorFunction,
  type SchedulerLike,
  toArray,
} from 'rxjs';
import { checkAtLeast } from '../../support/checks.js';
import type { Renderer, TrainOn } from '../../chat/renderers/core/Renderer.js';
import { cancelling } from '../../support/cancelling.js';
import { mergeMapWeighted } from '../../operators/mergeMapWeighted.js';
import type { Sampleable } from '../../operators/sampleFrom.js';
import { toDatums, type ToDatumsOptions } from '../../operators/toDatums.js';
import { distinctIds, exampleId } from './internal/exampleId.js';
import { scoreDatum, type DatumScore } from './internal/scoreDatum.js';
import { expectedOf, inputText } from './internal/taskText.js';
import type { EvalRecord } from './record.js';

/** Options of `likelihood`. */
export interface LikelihoodOptions extends Pick<ToDatumsOptions<TrainOn>, 'trainOn'> {
  /** Whose predictions are measured. */
  readonly sampler: Sampleable;
  /** Writes conversations as tokens. */
  readonly renderer: Renderer;
  /** The id of a row. Default: its `id`, else a digest of what it holds. */
  readonly id?: (row: unknown) => string;
  /** How many rows may be in flight at once: ≥ 1. Default 200. */
  readonly concurrency?: number;
  /** Whether the likeliest token of every position is asked for, too, for `accuracy`. Default true. */
  readonly accuracy?: boolean;
  /** Rows that are left out, by id. Default: none. */
  readonly skip?: (id: string) => boolean;
  /** For durations. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
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
 * A row that cannot be written or scored is a failure of that record. Errors of the source end the stream. Unsubscribing cancels
 * what is in flight. Holds the rows in flight, and ids.
 */
export function likelihood(options: LikelihoodOptions): OperatorFunction<unknown, EvalRecord> {
  const { renderer, id = exampleId, concurrency = 200, skip = () => false, scheduler = asyncScheduler } = options;
  const { sampler, trainOn, accuracy = true } = options;
  checkAtLeast({ concurrency }, 1);
  const measure = (row: unknown): Observable<readonly DatumScore[]> =>
    of(row).pipe(
      toDatums(renderer, { onBadRow: 'error', ...(trainOn === undefined ? {} : { trainOn }) }),
      toArray(),
      concatMap((datums) =>
        forkJoin(
          datums.map((datum) =>
            scoreDatum(datum, { renderer, accuracy, sample: (asked) => cancelling(sampler.sample(asked)) }),
          ),
        ),
      ),
    );
  return (source) =>
    defer(() => {
      const distinct = distinctIds();
      return source.pipe(
        concatMap((row) => {
          const name = distinct(id(row));
          return skip(name) ? EMPTY : of({ row, name });
        }),
        mergeMapWeighted(
          ({ row, name }) =>
            defer(() => {
              const startedMs = scheduler.now();
              const facts = { id: name, input: inputText(row), ...expectedIn(row) };
              return measure(row).pipe(
                map((scores) => recordOf(facts, scores, scheduler.now() - startedMs)),
                catchError((error: unknown) => of(failed(facts, error, scheduler.now() - startedMs))),
              );
            }),
          { weight: () => 1, budget: Infinity, concurrency },
        ),
      );
    });
}

type Facts = Pick<EvalRecord, 'id' | 'input' | 'expected'>;

const expectedIn = (row: unknown): { readonly expected?: string } => {
  const expected = expectedOf(row);
  return expected === undefined ? {} : { expected };
};

function recordOf(facts: Facts, parts: readonly DatumScore[], durationMs: number): EvalRecord {
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
  const sample = {
    ...{
      index: 0,
      seed: 0,
      output: '',
      score: scores.logprob,
      scores,
      metrics: { nll, tokens, textNll, bytes, correct },
    },
    ...{ promptTokens: sum('promptTokens'), sampledTokens: 0, stopReason: 'scored', durationMs },
  };
  return { ...facts, samples: [sample], failures: [], durationMs };
}

function failed(facts: Facts, error: unknown, durationMs: number): EvalRecord {
  const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) };
  return { ...facts, samples: [], failures: [{ index: 0, stage: 'rollout', name, message }], durationMs };
}
