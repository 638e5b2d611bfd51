/**
 * Reinforcement learning as streams. The path of a task, and where to read on:
 *
 * 1. `reinforce.ts` puts the three operators below together; start there.
 * 2. `pacing/admit.ts` lets the task in when training has room for it, and there are weights to sample from (`pacing/LivePolicy.ts`).
 * 3. `sampling/rollouts.ts` tries it a number of times: `runGroup.ts` calls your hook with a `RolloutPolicy`, and keeps ids and logprobs.
 *    `environments/` builds such hooks: one turn, several, tools, a teacher. `rewards/` says how good a try was, or a whole group.
 * 4. `learning/advantages.ts` compares the tries with each other; `learning/grpo.ts` makes batches of groups (`BatchMaker.ts`), sends
 *    them to the trainer (`LoopTrainer.ts`), publishes the new weights and tells the pace that there is room again.
 * 5. `log/rlLog.ts` writes down what happened, `log/resumeRl.ts` reads where to continue.
 *
 * @module tinker-rx/rl
 */
import '../support/checkNode.js';
export { advantages, type AdvantagesOptions, type ScoredGroup, type Scoring } from './learning/advantages.js';
export { comparison } from './rewards/comparison.js';
export {
  conversation,
  type ConversationLimits,
  type ConversationOptions,
  type Episode,
  type Reply,
  type StopKind,
} from './environments/conversation.js';
export { distill, type DistillOptions } from './distill.js';
export { type GroupReward, groupRewards, type GroupRewardsOptions } from './rewards/groupRewards.js';
export { RolloutsFailedError } from './learning/FailedGroups.js';
export { grpo } from './learning/grpo.js';
export type { GrpoOptions, KlPenaltyOptions, Reference, RlTrainer } from './learning/GrpoOptions.js';
export { judge, type JudgeOptions } from './rewards/judge.js';
export { LivePolicy, type PolicyVersion } from './pacing/LivePolicy.js';
export { type McpClient, mcpTools, type McpToolsOptions } from './environments/mcpTools.js';
export { type Compare, pairwise, type PairwiseOptions } from './rewards/pairwise.js';
export type { Reward, TaskRow } from './rewards/Reward.js';
export { reinforce, type ReinforceOptions } from './reinforce.js';
export { resumeRl, type ResumeRlOptions, type RlResumePoint } from './log/resumeRl.js';
export type { DropReason, RlEvent, RlListener, RlWarningCode, SampleEvent } from './pacing/rlEvent.js';
export { rlLog, type RlLogOptions } from './log/rlLog.js';
export type { ClipBounds, RlLoss } from './learning/rlLoss.js';
export type { RlResume, RlStep } from './learning/rlStep.js';
export {
  rlTool,
  type RlTool,
  type StandardResult,
  type StandardSchema,
  type ToolContext,
  type ToolSet,
  toolUse,
  type ToolUseOptions,
} from './environments/toolUse.js';
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
} from './sampling/rollout.js';
export { rollouts, type RolloutsOptions } from './sampling/rollouts.js';
export { type Answer, singleTurn, type SingleTurnOptions } from './environments/singleTurn.js';
export { taught, type TaughtOptions, type Teachers, type WeightedTeacher } from './environments/taught.js';
export { type Grader, type WeightedReward, weightedRewards } from './rewards/weightedRewards.js';
