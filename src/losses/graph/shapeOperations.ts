import { on, type Call, type Operation } from './call.js';
import { axisOf } from './ndArray.js';
import { concatenate, expand, flip, getItem, permute, reshape } from './shaping.js';
import { toNumber, toVariable, type Value } from './values.js';
import type { Variable } from './variable.js';

/** Operations that ask about shapes or move values without changing them. */
export const SHAPE_OPERATIONS: Readonly<Record<string, Operation>> = {
  numel: on((x) => x.data.length),
  dim: on((x) => x.shape.length),
  size: on((x, call) => {
    const axis = call.get(1, 'dim');
    return axis === undefined ? [...x.shape] : x.shape[axisOf(toNumber(axis), x.shape.length)]!;
  }),
  len: on((x) => x.shape[0] ?? 0),
  getattr: on((x, call) => attribute(x, call.get(1, 'name'))),
  getitem: (call) => item(call.get(0, 'input')!, call.get(1, 'index')!),
  reshape: on((x, call) => reshape(x, call.rest(1))),
  flatten: on((x) => reshape(x, [-1])),
  unsqueeze: on((x, call) => {
    const axis = axisOf(toNumber(call.get(1, 'dim')), x.shape.length + 1);
    return reshape(x, [...x.shape.slice(0, axis), 1, ...x.shape.slice(axis)]);
  }),
  squeeze: on((x, call) => {
    const dim = call.get(1, 'dim');
    const only = dim === undefined ? undefined : axisOf(toNumber(dim), x.shape.length);
    return reshape(
      x,
      x.shape.filter((extent, axis) => extent !== 1 || (only !== undefined && axis !== only)),
    );
  }),
  transpose: on((x, call) => {
    const [a, b] = [call.get(1, 'dim0'), call.get(2, 'dim1')].map((axis) => axisOf(toNumber(axis), x.shape.length));
    const axes = x.shape.map((_, axis) => (axis === a ? b! : axis === b ? a! : axis));
    return permute(x, axes);
  }),
  t: on(transposed),
  permute: on((x, call) => permute(x, call.rest(1))),
  expand: on((x, call) => expand(x, call.rest(1))),
  expand_as: on((x, call) => expand(x, toVariable(call.get(1, 'other')).shape)),
  flip: on((x, call) => flip(x, call.rest(1))),
  cat: (call) => concatenate(tensors(call), toNumber(call.get(1, 'dim') ?? 0)),
  stack: (call) => {
    const parts = tensors(call);
    const axis = axisOf(toNumber(call.get(1, 'dim') ?? 0), (parts[0]?.shape.length ?? 0) + 1);
    const raised = parts.map((part) => reshape(part, [...part.shape.slice(0, axis), 1, ...part.shape.slice(axis)]));
    return concatenate(raised, axis);
  },
};

const tensors = (call: Call): Variable[] => (call.get(0, 'tensors') as readonly Value[]).map(toVariable);

function transposed(x: Variable): Variable {
  return permute(
    x,
    x.shape.map((_, axis) => x.shape.length - 1 - axis),
  );
}

function attribute(x: Variable, name: Value | undefined): Value {
  if (name === 'shape') return [...x.shape];
  if (name === 'ndim') return x.shape.length;
  if (name === 'T') return transposed(x);
  return { named: typeof name === 'string' ? name : '' };
}

/** Indexing a tensor, or picking from what an operation gave back as a tuple. */
function item(container: Value, index: Value): Value {
  if (Array.isArray(container)) return (container as readonly Value[]).at(toNumber(index)) ?? null;
  return getItem(toVariable(container), index);
}
