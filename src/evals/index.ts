/**
 * Evaluations: tasks, an agent, scorers, and statistics to compare two runs. Cost and budgets of a run.
 *
 * @module tinker-rx/evals
 */
import '../support/checkNode.js';
export { type Budget, budgetSpent, type BudgetSpent } from './cost/budgetSpent.js';
export { type ModelPrice, type PriceList, readPrices, type ReadPricesOptions } from './cost/prices.js';
export { type Reconciliation, reconcileCost } from './cost/reconcileCost.js';
export { type Cost, priceOf, type TokenCounts, trackCost, type TrackCostOptions } from './cost/trackCost.js';
export { readSpent, type Spent, type SpentLine } from './cost/readSpent.js';
export { withCost, type WithCostOptions } from './cost/withCost.js';
export { withinBudget, type WithinBudgetOptions } from './cost/withinBudget.js';
export { answers, type AnswersOptions } from './run/answers.js';
export { decisions, type DecisionsOptions } from './run/decisions.js';
export { decisionsInto, type DecisionsIntoOptions } from './run/decisionsInto.js';
export { evaluate, type EvaluateOptions } from './run/evaluate.js';
export { type EvalFileOptions, evaluateInto, type EvaluateIntoOptions } from './run/evaluateInto.js';
export { evaluation, type EvaluationOptions } from './run/evaluation.js';
export { fromEval } from './run/fromEval.js';
export { likelihood, type LikelihoodOptions } from './run/likelihood.js';
export { likelihoodInto } from './run/likelihoodInto.js';
export { type ProtocolDifference, protocolDifferences } from './run/protocolDifferences.js';
export { readProtocol } from './run/readProtocol.js';
export type { EvalFailure, EvalProtocol, EvalRecord, EvalSample, ScoringOptions } from './run/record.js';
export { contains } from './scorers/contains.js';
export { exact, type TextScorerOptions } from './scorers/exact.js';
export { jsonSchema } from './scorers/jsonSchema.js';
export { judged, type JudgedOptions } from './scorers/judged.js';
export { numeric, type NumericOptions } from './scorers/numeric.js';
export type { Score, ScoreArgs, Scorer } from './scorers/scorer.js';
export {
  type Calibration,
  calibrationOf,
  type CalibrationOptions,
  type Decided,
  type Threshold,
} from './statistics/calibrationOf.js';
export {
  compareEvals,
  type CompareOptions,
  type EvalComparison,
  type EvalPair,
  type EvalVerdict,
} from './statistics/compareEvals.js';
export { differenceInterval, type Interval, meanInterval } from './statistics/intervals.js';
export { passAtK } from './statistics/passAtK.js';
export {
  type CorpusSummary,
  type EvalSummary,
  summarize,
  type SummarizeOptions,
  summaryOf,
} from './statistics/summarize.js';
