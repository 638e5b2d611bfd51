/**
 * Losses written in TypeScript, and ready ones.
 *
 * @module tinker-rx/losses
 */
import '../support/checkNode.js';
export { addLosses } from './addLosses.js';
export { checkLoss, type CheckLossOptions, type GradientCheck, type LossCheck, type LossChecker } from './checkLoss.js';
export {
  defineLoss,
  type DefineLossOptions,
  type InputRanks,
  type LossInputName,
  type StandardLossInputs,
  type LossInputs,
} from './defineLoss.js';
export { definePairLoss, type PairInputs } from './definePairLoss.js';
export { type DatumLogprobs, type EvaluatedLoss, evaluateLoss } from './evaluateLoss.js';
export type { LossOps } from './trace/ops.js';
export type { LossReturn } from './trace/record.js';
export { type Along, Tensor } from './trace/Tensor.js';
export type { Operand } from './trace/Trace.js';
export { isTracedLoss, type LossUnit, TracedLoss, type TracedInput } from './TracedLoss.js';
export { clippedPolicyGradient, type ClippedPolicyGradientOptions, policyGradient } from './ready/policyGradient.js';
export {
  dpo,
  type DpoOptions,
  ipo,
  type IpoOptions,
  orpo,
  type OrpoOptions,
  simpo,
  type SimpoOptions,
} from './ready/preferences.js';
export {
  entropyBonus,
  klRegularized,
  klToReference,
  type KlOptions,
  l2ToReference,
  type RegularizerOptions,
} from './ready/regularizers.js';
export { softTargetsForward, softTargetsReverse } from './ready/softTargets.js';
export { weightedSft, type WeightedSftOptions } from './ready/weightedSft.js';
