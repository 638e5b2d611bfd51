import type { Steps } from '../thread/breathe.js';
import { attendBackward } from './attention.js';
import type { BaseGradients } from './baseModel.js';
import {
  DOWN,
  firstNorm,
  GATE,
  gatedUnit,
  K,
  O,
  PER_LAYER,
  Q,
  secondNorm,
  UP,
  V,
  type LayerTape,
  type Pass,
} from './layer.js';
import { linearBackward } from './linear.js';
import { attentionWidths } from './shapes.js';

/** Takes `dx`, the gradient of a layer's result, to that of its input `x`. `dNormed` is room for rows of the width; gate and up are used up. */
export function* backwardLayer(
  pass: Pass,
  layer: number,
  x: number,
  saved: LayerTape,
  dx: number,
  dNormed: number,
  gradients: BaseGradients | undefined,
): Steps<void> {
  const { heap, base, rows, adapter, positions } = pass;
  const { width, hidden } = base.shape;
  const back = (which: number, input: number, dOut: number, dInput: number, accumulate: boolean) => {
    const index = layer * PER_LAYER + which;
    linearBackward(heap, base, index, adapter, gradients, rows, input, saved.low[which]!, dOut, dInput, accumulate);
  };
  const normBack = (which: 0 | 1, input: number, inverse: number) => {
    const dGain = gradients?.norms[2 * layer + which] ?? -1;
    const split = { count: rows, alone: dGain >= 0 };
    heap.run('normBackward', split, width, input, base.norms[2 * layer + which]!, inverse, dNormed, dx, dGain);
  };

  const { gate, up } = saved;
  const dGated = heap.scratch(rows * hidden);
  back(DOWN, gatedUnit(pass, gate, up), dx, dGated, false);
  yield;
  heap.run('swigluBackward', { count: rows }, hidden, gate, up, dGated);
  const normed2 = secondNorm(pass, layer, saved.middle, saved.inverse2);
  back(GATE, normed2, gate, dNormed, false);
  yield;
  back(UP, normed2, up, dNormed, true);
  yield;
  normBack(1, saved.middle, saved.inverse2);

  const dAttended = heap.scratch(rows * attentionWidths(base.shape).queries);
  back(O, saved.attended, dx, dAttended, false);
  yield;
  const { dq, dk, dv } = attendBackward(heap, base, layer, positions, saved.heads, rows, dAttended);
  yield;
  const normed = firstNorm(pass, layer, x, saved.inverse);
  back(Q, normed, dq, dNormed, false);
  yield;
  back(K, normed, dk, dNormed, true);
  yield;
  back(V, normed, dv, dNormed, true);
  yield;
  normBack(0, x, saved.inverse);
}
