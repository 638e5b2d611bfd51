import { defineLoss } from '../defineLoss.js';
import type { LossOps } from '../trace/ops.js';
import type { Tensor } from '../trace/Tensor.js';
import type { TracedLoss } from '../TracedLoss.js';

/** Probabilities below this are taken for it, so that logarithms stay finite. */
const LEAST = 1e-6;

/** What teacher and student have at each position: the listed tokens, and everything else as one. */
function sides(logprobs: Tensor, weights: Tensor, ops: LossOps) {
  const listed = weights.gt(0);
  const none = ops.zerosLike(weights);
  const logTeacher = weights.clamp({ min: LEAST }).log();
  const student = ops.where(listed, logprobs.exp(), none);
  const mass = weights.sum({ dim: -1 });
  const restTeacher = ops.sub(1, mass).clamp({ min: LEAST });
  const restStudent = ops.sub(1, student.sum({ dim: -1 })).clamp({ min: LEAST });
  /** 0 at positions without targets. */
  const counted = (rows: Tensor): Tensor => ops.where(mass.gt(0), rows, ops.zerosLike(mass)).sum();
  return { listed, none, logTeacher, student, restTeacher, restStudent, counted };
}

/**
 * Forward KL divergence from a teacher's top-k tokens: Σ over positions of Σₖ tₖ · (log tₖ − log pₖ) + t₀ · (log t₀ − log p₀). t are the
 * teacher's probabilities of the listed tokens, p the student's, and index 0 is all other tokens together. Positions whose weights are all 0 do not count.
 *
 * Inputs: `target_tokens` and `weights`, [positions, K]; the weights are the probabilities t, as the teacher has them, not rescaled.
 */
export function softTargetsForward(): TracedLoss {
  return defineLoss(
    ({ logprobs, weights }, ops) => {
      const { logTeacher, restTeacher, restStudent, counted } = sides(logprobs, weights, ops);
      const inside = weights.mul(logTeacher.sub(logprobs)).sum({ dim: -1 });
      const outside = restTeacher.mul(restTeacher.log().sub(restStudent.log()));
      return counted(inside.add(outside));
    },
    { name: 'soft_targets_forward' },
  );
}

/**
 * Reverse KL divergence to a teacher's top-k tokens: Σ over positions of Σₖ pₖ · (log pₖ − log tₖ) + p₀ · (log p₀ − log t₀), in the letters of
 * {@link softTargetsForward}. It prefers what the teacher finds likely over covering all of it.
 *
 * Inputs: `target_tokens` and `weights`, [positions, K]; the weights are the probabilities t, as the teacher has them, not rescaled.
 */
export function softTargetsReverse(): TracedLoss {
  return defineLoss(
    ({ logprobs, weights }, ops) => {
      const { listed, none, logTeacher, student, restTeacher, restStudent, counted } = sides(logprobs, weights, ops);
      const away = ops.where(listed, logprobs.sub(logTeacher), none);
      const inside = student.mul(away).sum({ dim: -1 });
      const outside = restStudent.mul(restStudent.log().sub(restTeacher.log()));
      return counted(inside.add(outside));
    },
    { name: 'soft_targets_reverse' },
  );
}
