/** Numbers in rows of rows, flattened. A mask is 0s and 1s that came from a comparison. */
export interface NdArray {
  readonly shape: readonly number[];
  readonly data: Float64Array;
  readonly isMask: boolean;
}

export const ndArray = (shape: readonly number[], data: Float64Array, isMask = false): NdArray => ({
  shape,
  data,
  isMask,
});
export const scalar = (value: number | boolean): NdArray =>
  ndArray([], Float64Array.of(Number(value)), typeof value === 'boolean');
export const sizeOf = (shape: readonly number[]): number => shape.reduce((product, extent) => product * extent, 1);

/** The shape that two arrays have in common after each is repeated where it has extent 1. */
export function broadcastShapes(a: readonly number[], b: readonly number[]): number[] {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, axis) => {
    const [x, y] = [a[axis - rank + a.length] ?? 1, b[axis - rank + b.length] ?? 1];
    if (x !== y && x !== 1 && y !== 1) {
      throw new RangeError(`shapes [${a.join(', ')}] and [${b.join(', ')}] do not fit together`);
    }
    return x === 1 ? y : x;
  });
}

/** For every place of `to`, the place in an array of shape `from` that is repeated there. */
export function broadcastPlaces(from: readonly number[], to: readonly number[]): Int32Array {
  const strides = stridesOf(from);
  const offset = to.length - from.length;
  return places(to, (axis) => (axis < offset || from[axis - offset] === 1 ? 0 : strides[axis - offset]!));
}

export function stridesOf(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= shape[axis]!;
  }
  return strides;
}

/** Walks a shape in order; each step along an axis moves by that axis's stride in another array. */
export function places(shape: readonly number[], strideOf: (axis: number) => number, start = 0): Int32Array {
  const strides = shape.map((_, axis) => strideOf(axis));
  const result = new Int32Array(sizeOf(shape));
  const counter = new Int32Array(shape.length);
  let place = start;
  for (let index = 0; index < result.length; index++) {
    result[index] = place;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      place += strides[axis]!;
      if (++counter[axis]! < shape[axis]!) break;
      place -= strides[axis]! * shape[axis]!;
      counter[axis] = 0;
    }
  }
  return result;
}

/** An axis counted from the front. @throws RangeError if there is no such axis. */
export function axisOf(axis: number, rank: number): number {
  // One number alone counts as one dimension here, as in PyTorch.
  const dimensions = Math.max(rank, 1);
  const counted = axis < 0 ? axis + dimensions : axis;
  if (!Number.isInteger(axis) || counted < 0 || counted >= dimensions) {
    throw new RangeError(`there is no dimension ${axis} in ${rank}`);
  }
  return counted;
}

/** A place along a dimension, counted from its end if negative. @throws RangeError if there is none. */
export function placeOf(index: number, extent: number): number {
  const counted = index < 0 ? index + extent : index;
  if (!Number.isInteger(index) || counted < 0 || counted >= extent) {
    throw new RangeError(`there is no place ${index} among ${extent}`);
  }
  return counted;
}
