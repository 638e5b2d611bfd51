import type { SchedulerLike } from 'rxjs';
import type { FailurePolicy } from '../../operators/flow/FailurePolicy.js';

/** One answer to one example. */
export interface EvalSample {
  /** Its place among the samples of its example, counted from 0. */
  readonly index: number;
  /** The seed it was sampled with. */
  readonly seed: number;
  /** The answer as text. */
  readonly output: string;
  /** The score that counts: that of the first scorer, or the reward of the rollout if there is no scorer. */
  readonly score: number;
  /** All scores by name. */
  readonly scores: Readonly<Record<string, number>>;
  /** Metrics that the rollout reports. */
  readonly metrics?: Readonly<Record<string, number>>;
  /** Tokens of all prompts, and tokens sampled. */
  readonly promptTokens: number;
  /** How many tokens were sampled. */
  readonly sampledTokens: number;
  /** Why sampling ended: `length` or `stop`. */
  readonly stopReason: string;
  /** How long the sample took, in milliseconds. */
  readonly durationMs: number;
}

/** A sample that there is no score of: not a wrong answer. */
export interface EvalFailure {
  /** Which sample failed, counted from 0. */
  readonly index: number;
  /** Whether the answer itself failed, or a scorer did. */
  readonly stage: 'rollout' | 'scorer';
  /** The error's name. */
  readonly name: string;
  /** The error's message. */
  readonly message: string;
  /** What the model said, if a scorer failed. */
  readonly output?: string;
}

/** All samples of one example: a line of the result file. */
export interface EvalRecord {
  /** The same for the same task in every run. */
  readonly id: string;
  /** What was asked, as text. */
  readonly input: string;
  /** The expected answer, if the example has one. */
  readonly expected?: string;
  /** The samples that succeeded, with their scores. */
  readonly samples: readonly EvalSample[];
  /** The samples or scorers that failed. */
  readonly failures: readonly EvalFailure[];
  /** How long the example took, in milliseconds. */
  readonly durationMs: number;
}

/** How an evaluation is made: the first line of the result file. Two results can be compared where these agree. */
export interface EvalProtocol {
  /** What is asked: a file's name, or any other. */
  readonly tasks?: string | undefined;
  /** Which weights: a model or a checkpoint. The one thing that is meant to differ between two evaluations. */
  readonly model?: string | undefined;
  /** The renderer that wrote the prompts, if one was used. */
  readonly renderer?: string | undefined;
  /** Samples per example. */
  readonly samples: number;
  /** How it was sampled. */
  readonly samplingParams: Readonly<Record<string, unknown>>;
  /** The seed of the whole evaluation. */
  readonly seed: number;
  /** The names of the scorers. */
  readonly scorers: readonly string[];
  /** A score from this on is a pass. */
  readonly passAt: number;
  /** The versions of this package and of Node.js. */
  readonly versions: Readonly<Record<string, string>>;
  /** Anything else that is worth pinning. */
  readonly notes?: Readonly<Record<string, unknown>> | undefined;
}

/** Options of evaluations that score rows and sample nothing. */
export interface ScoringOptions {
  /** The id of a row. Default: its `id`, else a digest of what it holds. */
  readonly id?: (row: unknown) => string;
  /** How many rows may be in flight at once: ≥ 1. Default 200. */
  readonly concurrency?: number;
  /**
   * What a row that cannot be measured does. Default 'skip': it is listed in `failures` of its record. 'fail' ends the stream; `retries`
   * measures it again first; `deadLetters` is told of it. A failure that all rows would meet, such as a refused key, always ends the stream.
   */
  readonly onFailure?: FailurePolicy<unknown>;
  /** Rows that are left out, by id. Default: none. */
  readonly skip?: (id: string) => boolean;
  /** For durations. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}
