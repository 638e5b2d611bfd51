export { advantages, type AdvantagesOptions, type ScoredGroup, type Scoring } from './advantages.js';
export { comparison } from './comparison.js';
export {
  conversation,
  type ConversationLimits,
  type ConversationOptions,
  type Episode,
  type Reply,
  type StopKind,
} from './conversation.js';
export { distill, type DistillOptions } from './distill.js';
export { type GroupReward, groupRewards, type GroupRewardsOptions } from './groupRewards.js';
export { grpo, type GrpoOptions, type KlPenaltyOptions, type Reference, type RlTrainer } from './grpo.js';
export { judge, type JudgeOptions } from './judge.js';
export { LivePolicy, type PolicyVersion } from './LivePolicy.js';
export { type Compare, pairwise, type PairwiseOptions } from './pairwise.js';
export { reinforce, type ReinforceOptions } from './reinforce.js';
export { resumeRl, type RlResumePoint } from './resumeRl.js';
export type { DropReason, RlEvent, RlListener, RlWarningCode } from './rlEvent.js';
export { rlLog, type RlLogOptions } from './rlLog.js';
export type { ClipBounds, RlLoss } from './rlLoss.js';
export type { RlResume, RlStep } from './rlStep.js';
export { rlTool } from './rlTool.js';
export type {
  Agent,
  Graded,
  Group,
  GroupAgent,
  GroupContext,
  Policy,
  Rollout,
  RolloutContext,
  RolloutFailure,
  RolloutHook,
  Trajectory,
  Turn,
} from './rollout.js';
export { rollouts, type RolloutsOptions } from './rollouts.js';
export { type Answer, singleTurn, type SingleTurnOptions } from './singleTurn.js';
export { taught, type TaughtOptions, type Teachers, type WeightedTeacher } from './taught.js';
export {
  type RlTool,
  type StandardResult,
  type StandardSchema,
  type ToolContext,
  type ToolSet,
  toolUse,
  type ToolUseOptions,
} from './toolUse.js';
export { type Grader, type WeightedReward, weightedRewards } from './weightedRewards.js';
