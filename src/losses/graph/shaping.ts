import { axisOf, broadcastPlaces, ndArray, placeOf, places, sizeOf, stridesOf } from './ndArray.js';
import { isSlice, type Value } from './values.js';
import { result, Variable } from './variable.js';

/** The values at some places, in a new shape; derivatives go back to where the values came from. */
function gather(x: Variable, shape: readonly number[], from: Int32Array): Variable {
  const data = Float64Array.from(from, (place) => x.data[place]!);
  if (x.value.isMask) return new Variable(ndArray(shape, data, true));
  return result(shape, data, [x], (gradient) => gradient.forEach((g, i) => x.receive(from[i]!, g)));
}

/** The same values in another shape; one extent may be −1. */
export function reshape(x: Variable, wanted: readonly number[]): Variable {
  const known = wanted.filter((extent) => extent !== -1);
  const shape = wanted.map((extent) => (extent === -1 ? x.data.length / sizeOf(known) : extent));
  if (sizeOf(shape) !== x.data.length) {
    throw new RangeError(`${x.data.length} values do not fit shape [${wanted.join(', ')}]`);
  }
  return gather(
    x,
    shape,
    Int32Array.from(x.data, (_, i) => i),
  );
}

export function permute(x: Variable, axes: readonly number[]): Variable {
  const order = axes.map((axis) => axisOf(axis, x.shape.length));
  const strides = stridesOf(x.shape);
  const shape = order.map((axis) => x.shape[axis]!);
  return gather(
    x,
    shape,
    places(shape, (axis) => strides[order[axis]!]!),
  );
}

export function expand(x: Variable, wanted: readonly number[]): Variable {
  const offset = wanted.length - x.shape.length;
  const shape = wanted.map((extent, axis) => (extent === -1 ? x.shape[axis - offset]! : extent));
  return gather(x, shape, broadcastPlaces(x.shape, shape));
}

export function flip(x: Variable, axes: readonly number[]): Variable {
  const flipped = new Set(axes.map((axis) => axisOf(axis, x.shape.length)));
  const strides = stridesOf(x.shape);
  const start = [...flipped].reduce((sum, axis) => sum + (x.shape[axis]! - 1) * strides[axis]!, 0);
  return gather(
    x,
    x.shape,
    places(x.shape, (axis) => (flipped.has(axis) ? -strides[axis]! : strides[axis]!), start),
  );
}

export function concatenate(parts: readonly Variable[], axis: number): Variable {
  const [first] = parts;
  if (first === undefined) throw new RangeError('nothing to concatenate');
  const counted = axisOf(axis, first.shape.length);
  for (const { shape: other } of parts) {
    const fits = other.length === first.shape.length && other.every((n, at) => at === counted || n === first.shape[at]);
    if (!fits || other.length === 0)
      throw new RangeError(`shapes [${first.shape.join(', ')}] and [${other.join(', ')}] cannot be joined`);
  }
  const shape = first.shape.map((extent, at) =>
    at === counted ? parts.reduce((sum, part) => sum + part.shape[counted]!, 0) : extent,
  );
  const strides = stridesOf(shape);
  const data = new Float64Array(sizeOf(shape));
  let offset = 0;
  const targets = parts.map((part) => {
    const target = places(part.shape, (at) => strides[at]!, offset);
    offset += part.shape[counted]! * strides[counted]!;
    target.forEach((place, i) => (data[place] = part.data[i]!));
    return target;
  });
  return result(shape, data, parts, (gradient) =>
    parts.forEach((part, index) => targets[index]!.forEach((place, i) => part.receive(i, gradient[place]!))),
  );
}

/** Python's indexing: numbers, slices, None, …, a mask, or one tensor of places along the first dimension. */
export function getItem(x: Variable, index: Value): Variable {
  const parts: readonly Value[] = Array.isArray(index) ? (index as readonly Value[]) : [index];
  const [only] = parts;
  if (parts.length === 1 && only instanceof Variable) return takeRows(x, only);
  const strides = stridesOf(x.shape);
  const used = parts.filter((part) => part !== null && part !== '...').length;
  const shape: number[] = [];
  const steps: number[] = [];
  let start = 0;
  let axis = 0;
  const keep = (extent: number, stride: number) => {
    shape.push(extent);
    steps.push(stride);
  };
  const extentAt = (at: number): number => {
    const extent = x.shape[at];
    if (extent === undefined)
      throw new RangeError(`there is no dimension ${at} in ${x.shape.length} to take a part of`);
    return extent;
  };
  const keepWhole = (count: number) => {
    for (let left = count; left > 0; left--, axis++) keep(x.shape[axis]!, strides[axis]!);
  };
  for (const part of parts) {
    if (part === null) keep(1, 0);
    else if (part === '...') keepWhole(x.shape.length - used);
    else if (typeof part === 'number') {
      start += placeOf(part, extentAt(axis)) * strides[axis]!;
      axis++;
    } else if (isSlice(part)) {
      const { from, count, step } = sliceOf(part.slice, extentAt(axis));
      start += from * strides[axis]!;
      keep(count, step * strides[axis]!);
      axis++;
    } else throw new RangeError('an index of this kind is not supported');
  }
  keepWhole(x.shape.length - axis);
  return gather(
    x,
    shape,
    places(shape, (at) => steps[at]!, start),
  );
}

function sliceOf([begin, end, step]: readonly (number | null)[], extent: number) {
  const bound = (value: number) => Math.min(Math.max(value < 0 ? value + extent : value, 0), extent);
  const [from, to, by] = [bound(begin ?? 0), bound(end ?? extent), step ?? 1];
  if (by < 1) throw new RangeError('slices must go forward');
  return { from, step: by, count: Math.max(0, Math.ceil((to - from) / by)) };
}

function takeRows(x: Variable, index: Variable): Variable {
  if (index.value.isMask) {
    if (index.shape.some((extent, axis) => extent !== x.shape[axis]))
      throw new RangeError(`a mask of shape [${index.shape.join(', ')}] does not fit [${x.shape.join(', ')}]`);
    const row = x.data.length / Math.max(index.data.length, 1);
    const chosen = [...index.data.keys()].filter((i) => index.data[i] !== 0);
    const from = chosen.flatMap((i) => Array.from({ length: row }, (_, column) => i * row + column));
    return gather(x, [chosen.length, ...x.shape.slice(index.shape.length)], Int32Array.from(from));
  }
  const row = sizeOf(x.shape.slice(1));
  const rows = Array.from(index.data, (place) => placeOf(place, x.shape[0] ?? 0));
  const from = rows.flatMap((place) => Array.from({ length: row }, (_, column) => place * row + column));
  return gather(x, [...index.shape, ...x.shape.slice(1)], Int32Array.from(from));
}
