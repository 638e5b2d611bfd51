/** One answer to one example. */
export interface EvalSample {
  /** Its place among the samples of its example, counted from 0. */
  readonly index: number;
  /** The seed it was sampled with. */
  readonly seed: number;
  readonly output: string;
  /** The score that counts: that of the first scorer, or the reward of the rollout where there is no scorer. */
  readonly score: number;
  /** All scores by name. */
  readonly scores: Readonly<Record<string, number>>;
  /** What the rollout tells of itself. */
  readonly metrics?: Readonly<Record<string, number>>;
  /** Tokens of all prompts, and tokens sampled. */
  readonly promptTokens: number;
  readonly sampledTokens: number;
  readonly stopReason: string;
  readonly durationMs: number;
}

/** A sample that there is no score of: not a wrong answer. */
export interface EvalFailure {
  readonly index: number;
  /** Whether the answer itself failed, or a scorer did. */
  readonly stage: 'rollout' | 'scorer';
  readonly name: string;
  readonly message: string;
  /** What the model said, where a scorer failed. */
  readonly output?: string;
}

/** All samples of one example: a line of the result file. */
export interface EvalRecord {
  /** The same for the same task in every run. */
  readonly id: string;
  /** What was asked, as text. */
  readonly input: string;
  readonly expected?: string;
  readonly samples: readonly EvalSample[];
  readonly failures: readonly EvalFailure[];
  readonly durationMs: number;
}

/** How an evaluation is made: the first line of the result file. Two results can be compared where these agree. */
export interface EvalProtocol {
  /** What is asked: a file's name, or any other. */
  readonly tasks?: string | undefined;
  /** Which weights: a model or a checkpoint. The one thing that is meant to differ between two evaluations. */
  readonly model?: string | undefined;
  readonly renderer?: string | undefined;
  readonly samples: number;
  readonly samplingParams: Readonly<Record<string, unknown>>;
  readonly seed: number;
  readonly scorers: readonly string[];
  /** A score from this on is a pass. */
  readonly passAt: number;
  readonly versions: Readonly<Record<string, string>>;
  /** Anything else that is worth pinning. */
  readonly notes?: Readonly<Record<string, unknown>> | undefined;
}
