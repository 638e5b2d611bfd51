import type { RlStep } from '../learning/rlStep.js';
import type { ScoredGroup } from '../learning/advantages.js';
import type { Turn } from '../sampling/rollout.js';

/** Every rollout of a step as plain data. */
export function rolloutRecords(
  { index, groups }: RlStep,
  decode: ((tokens: Int32Array) => string) | undefined,
): Record<string, unknown>[] {
  return groups.flatMap((group, groupIndex) => groupRecords(group, { iteration: index, groupIndex }, decode));
}

/**
 * Every rollout of a group as plain data, under the names of the public cookbook's rollout summaries, and some more. `iteration` is the
 * index of the step that counts the group, `groupIndex` its place in that step.
 */
export function groupRecords(
  group: ScoredGroup,
  { iteration, groupIndex }: { readonly iteration: number; readonly groupIndex: number },
  decode: ((tokens: Int32Array) => string) | undefined,
): Record<string, unknown>[] {
  const shared = {
    schema_version: 1,
    split: 'train',
    iteration,
    group_idx: groupIndex,
    order: group.order,
    tags: group.tags,
  };
  const tried = group.trajectories.map((trajectory, place) => ({
    ...shared,
    traj_idx: trajectory.index,
    sampling_client_step: trajectory.step,
    total_reward: trajectory.reward,
    final_reward: trajectory.reward,
    advantage: group.advantages[place],
    ...(group.dropped === undefined ? {} : { dropped: group.dropped }),
    trajectory_metrics: trajectory.metrics ?? {},
    ...(trajectory.logs === undefined ? {} : { logs: trajectory.logs }),
    seed: trajectory.seed,
    duration_ms: trajectory.durationMs,
    final_ob_len: lengthOf(trajectory.turns.at(-1)!),
    steps: trajectory.turns.map((turn, step) => ({
      step_idx: step,
      ob_len: turn.prompt.length,
      ac_len: turn.sequence.tokens.length,
      episode_done: step === trajectory.turns.length - 1,
      stop_reason: turn.sequence.stopReason,
      ...(turn.masked === true ? { masked: true } : {}),
      ...said(trajectory.turns, step, decode),
    })),
  }));
  const failed = group.failures.map(({ index, ...error }) => ({ ...shared, traj_idx: index, error }));
  return [...tried, ...failed];
}

const lengthOf = ({ prompt, sequence }: Turn): number => prompt.length + sequence.tokens.length;

/** What the model was newly shown and what it said: all of the prompt only for the first turn, or where it does not extend. */
function said(turns: readonly Turn[], step: number, decode: ((tokens: Int32Array) => string) | undefined) {
  const { prompt, sequence } = turns[step]!;
  const before = step === 0 ? 0 : lengthOf(turns[step - 1]!);
  const isText = prompt.chunks.every(({ type }) => type === 'encoded_text');
  const seen = isText ? prompt.toInts().slice(before < prompt.length ? before : 0) : new Int32Array();
  return decode === undefined
    ? { ob_tokens: Array.from(seen), ac_tokens: Array.from(sequence.tokens) }
    : { ob_text: decode(seen), ac_text: decode(sequence.tokens) };
}
