import { binary, BINARY, unary, UNARY } from './elementwise.js';
import { axisOf, ndArray, sizeOf, stridesOf } from './ndArray.js';
import { constant, result, type Variable } from './variable.js';

/** Along which dimensions, and whether they stay with extent 1. Absent or empty: along all. */
export interface Along {
  readonly axes?: readonly number[] | undefined;
  readonly keep?: boolean | undefined;
}

interface Groups {
  readonly shape: readonly number[];
  readonly size: number;
  /** For every place of the argument, the place of its group in the result. */
  readonly groupOf: Int32Array;
}

function groups(shape: readonly number[], { axes = [], keep = false }: Along): Groups {
  const reduced = new Set(
    axes.length === 0 ? shape.map((_, axis) => axis) : axes.map((axis) => axisOf(axis, shape.length)),
  );
  const kept = shape.map((extent, axis) => (reduced.has(axis) ? 1 : extent));
  const strides = stridesOf(kept);
  const groupOf = new Int32Array(sizeOf(shape));
  const inner = stridesOf(shape);
  for (let index = 0; index < groupOf.length; index++) {
    let place = 0;
    for (const [axis, extent] of shape.entries()) {
      if (!reduced.has(axis)) place += (Math.floor(index / inner[axis]!) % extent) * strides[axis]!;
    }
    groupOf[index] = place;
  }
  return { shape: keep ? kept : shape.filter((_, axis) => !reduced.has(axis)), size: sizeOf(kept), groupOf };
}

export function sum(x: Variable, along: Along): Variable {
  const { shape, size, groupOf } = groups(x.shape, along);
  const data = new Float64Array(size);
  groupOf.forEach((group, i) => (data[group]! += x.data[i]!));
  return result(shape, data, [x], (gradient) => groupOf.forEach((group, i) => x.receive(i, gradient[group]!)));
}

export function mean(x: Variable, along: Along): Variable {
  const total = sum(x, along);
  const count = x.data.length / Math.max(total.data.length, 1);
  return binary(total, constant(count), BINARY['div']!);
}

/** Divided by the number of values less `correction`. */
export function variance(x: Variable, along: Along, correction: number): Variable {
  const away = binary(x, mean(x, { ...along, keep: true }), BINARY['sub']!);
  const total = sum(unary(away, UNARY['square']!), along);
  const count = x.data.length / Math.max(total.data.length, 1);
  return binary(total, constant(count - correction), BINARY['div']!);
}

export function logSumExp(x: Variable, along: Along): Variable {
  const { shape, size, groupOf } = groups(x.shape, along);
  const largest = new Float64Array(size).fill(-Infinity);
  groupOf.forEach((group, i) => (largest[group] = Math.max(largest[group]!, x.data[i]!)));
  // A group of nothing but −∞ would give −∞ − −∞.
  const base = largest.map((value) => (Number.isFinite(value) ? value : 0));
  const data = new Float64Array(size);
  groupOf.forEach((group, i) => (data[group]! += Math.exp(x.data[i]! - base[group]!)));
  data.forEach((value, group) => (data[group] = base[group]! + Math.log(value)));
  return result(shape, data, [x], (gradient) =>
    groupOf.forEach((group, i) => x.receive(i, gradient[group]! * Math.exp(x.data[i]! - data[group]!))),
  );
}

/** The largest (sign 1) or smallest (sign −1) of each group; equal ones share the derivative. */
export function extreme(x: Variable, sign: 1 | -1, along: Along): Variable {
  const { shape, size, groupOf } = groups(x.shape, along);
  const data = new Float64Array(size).fill(-sign * Infinity);
  groupOf.forEach((group, i) => {
    if (!(sign * x.data[i]! <= sign * data[group]!)) data[group] = x.data[i]!;
  });
  const ties = new Float64Array(size);
  groupOf.forEach((group, i) => (ties[group]! += Number(x.data[i] === data[group])));
  return result(shape, data, [x], (gradient) =>
    groupOf.forEach((group, i) => {
      if (x.data[i] === data[group]) x.receive(i, gradient[group]! / ties[group]!);
    }),
  );
}

/** The first place of the extreme along one dimension. Not derived. */
export function extremePlace(x: Variable, sign: 1 | -1, along: Along): Variable {
  const { shape, size, groupOf } = groups(x.shape, along);
  const [axis] = along.axes ?? [];
  const stride = axis === undefined ? 1 : stridesOf(x.shape)[axisOf(axis, x.shape.length)]!;
  const extent = axis === undefined ? x.data.length : x.shape[axisOf(axis, x.shape.length)]!;
  const best = new Float64Array(size).fill(-Infinity);
  const data = new Float64Array(size);
  groupOf.forEach((group, i) => {
    if (sign * x.data[i]! <= best[group]!) return;
    best[group] = sign * x.data[i]!;
    data[group] = Math.floor(i / stride) % extent;
  });
  return constant(ndArray(shape, data));
}

export function cumulativeSum(x: Variable, axis: number): Variable {
  if (x.shape.length === 0) return x;
  const counted = axisOf(axis, x.shape.length);
  const stride = stridesOf(x.shape)[counted]!;
  const extent = x.shape[counted]!;
  const isFirst = (i: number) => Math.floor(i / stride) % extent === 0;
  const data = Float64Array.from(x.data);
  for (let i = 0; i < data.length; i++) if (!isFirst(i)) data[i]! += data[i - stride]!;
  return result(x.shape, data, [x], (gradient) => {
    const back = Float64Array.from(gradient);
    for (let i = back.length - 1; i >= 0; i--) if (!isFirst(i)) back[i - stride]! += back[i]!;
    back.forEach((g, i) => x.receive(i, g));
  });
}
