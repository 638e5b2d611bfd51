/**
 * What threads do together: each op does a share of its work, items `first` to `end`, and the shares do not touch each other's
 * results. Arguments are numbers, so that they can be handed over in shared memory; offsets count floats.
 */
import type { Lane } from '../lane.js';
import { attend, attendBackward, remember } from './attention.js';
import { backward, forward, product } from './products.js';
import { norm, normBackward, rope, scaledExponentials, sumExponentials, swiglu, swigluBackward } from './rows.js';

const OPS = {
  attend,
  attendBackward,
  backward,
  forward,
  norm,
  normBackward,
  product,
  remember,
  rope,
  scaledExponentials,
  sumExponentials,
  swiglu,
  swigluBackward,
} as const;

export type OpName = keyof typeof OPS;
/** The arguments of an op after the share and the scratch memory. */
export type OpArguments<N extends OpName> =
  Parameters<(typeof OPS)[N]> extends [Lane, number, number, number, ...infer A extends number[]] ? A : never;

export const OP_NAMES = Object.keys(OPS) as readonly OpName[];

/** Does one share. */
export function runOp(
  name: OpName,
  lane: Lane,
  first: number,
  end: number,
  scratch: number,
  args: readonly number[],
): void {
  const op: (lane: Lane, ...rest: number[]) => void = OPS[name];
  op(lane, first, end, scratch, ...args);
}
