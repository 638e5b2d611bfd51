import { on, type Call, type Operation } from './call.js';
import {
  BINARY,
  binary,
  BINARY_TESTS,
  binaryTest,
  clamp,
  UNARY,
  unary,
  UNARY_TESTS,
  unaryTest,
  where,
} from './elementwise.js';
import { axisOf, ndArray, sizeOf } from './ndArray.js';
import { cumulativeSum, extreme, extremePlace, logSumExp, mean, sum, variance, type Along } from './reductions.js';
import { SHAPE_OPERATIONS } from './shapeOperations.js';
import { isNamed, isWhole, toNumber, toNumbers, toVariable, type Value } from './values.js';
import { constant, Variable } from './variable.js';

const along = (call: Call, place = 1): Along => {
  const dim = call.get(place, 'dim');
  return {
    axes: dim === undefined || dim === null ? undefined : toNumbers(dim),
    keep: Boolean(call.get(place + 1, 'keepdim') ?? false),
  };
};

const binaryOf = (name: string, places: readonly [string, string] = ['input', 'other']): Operation => {
  const definition = BINARY[name]!;
  return (call) => {
    const [a, b] = [toVariable(call.get(0, places[0])), toVariable(call.get(1, places[1]))];
    return binary(a, b, definition);
  };
};

/** `add` and `sub` scale what they add by `alpha`. */
const scaledOf = (name: 'add' | 'sub'): Operation =>
  on((x, call) => {
    const [other, alpha] = [toVariable(call.get(1, 'other')), call.get(2, 'alpha') ?? 1];
    return binary(x, alpha === 1 ? other : binary(other, toVariable(alpha), BINARY['mul']!), BINARY[name]!);
  });

/** torch.max and torch.min: of all, along a dimension with the places, or of two tensors. */
const extremeOf = (sign: 1 | -1): Operation =>
  on((x, call) => {
    const second = call.get(1, 'other') ?? call.get(1, 'dim');
    if (second === undefined) return extreme(x, sign, {});
    if (typeof second !== 'number') return binary(x, toVariable(second), BINARY[sign === 1 ? 'maximum' : 'minimum']!);
    const where_ = along(call);
    return [pick(x, sign, where_), extremePlace(x, sign, where_)];
  });

/** Along a dimension only the first of equal values is derived. */
function pick(x: Variable, sign: 1 | -1, where_: Along): Variable {
  const [axis = 0] = where_.axes ?? [];
  const chosen = extremePlace(x, sign, { axes: [axis], keep: true });
  const counted = axisOf(axis, x.shape.length);
  const inner = sizeOf(x.shape.slice(counted + 1));
  const place = constant(
    ndArray(
      x.shape,
      Float64Array.from(x.data, (_, i) => Math.floor(i / inner) % x.shape[counted]!),
    ),
  );
  const isChosen = binaryTest(place, chosen, (a, b) => a === b);
  return sum(where(isChosen, x, constant(0)), where_);
}

/** The largest float32, by which PyTorch replaces ∞. */
const LARGEST_FLOAT = (2 - 2 ** -23) * 2 ** 127;

const filled = (value: number): Operation =>
  on((x) => constant(ndArray(x.shape, new Float64Array(x.data.length).fill(value))));

const logSoftmax: Operation = on((x, call) =>
  binary(x, logSumExp(x, { axes: toNumbers(call.get(1, 'dim') ?? -1), keep: true }), BINARY['sub']!),
);

const operations: Readonly<Record<string, Operation>> = {
  ...Object.fromEntries(Object.entries(UNARY).map(([name, f]) => [name, on((x) => unary(x, f))])),
  ...Object.fromEntries(Object.entries(UNARY_TESTS).map(([name, test]) => [name, on((x) => unaryTest(x, test))])),
  ...Object.fromEntries(
    Object.entries(BINARY_TESTS).map(([name, test]) => [
      name,
      on((x, call) => binaryTest(x, toVariable(call.get(1, 'other')), test)),
    ]),
  ),
  add: scaledOf('add'),
  sub: scaledOf('sub'),
  mul: binaryOf('mul'),
  div: binaryOf('div'),
  floordiv: binaryOf('floordiv'),
  pow: binaryOf('pow', ['input', 'exponent']),
  maximum: binaryOf('maximum'),
  minimum: binaryOf('minimum'),
  max: extremeOf(1),
  min: extremeOf(-1),
  amax: on((x, call) => extreme(x, 1, along(call))),
  amin: on((x, call) => extreme(x, -1, along(call))),
  argmax: on((x, call) => extremePlace(x, 1, along(call))),
  argmin: on((x, call) => extremePlace(x, -1, along(call))),
  invert: on((x) => unaryTest(x, (value) => value === 0)),
  pos: on((x) => x),
  rsub: (call) => binary(toVariable(call.get(1, 'other')), toVariable(call.get(0, 'input')), BINARY['sub']!),
  where: (call) =>
    where(toVariable(call.get(0, 'condition')), toVariable(call.get(1, 'input')), toVariable(call.get(2, 'other'))),
  masked_fill: on((x, call) => where(toVariable(call.get(1, 'mask')), toVariable(call.get(2, 'value')), x)),
  clamp: on((x, call) => clamp(x, bound(call.get(1, 'min')), bound(call.get(2, 'max')))),
  clamp_min: on((x, call) => clamp(x, bound(call.get(1, 'min')), null)),
  clamp_max: on((x, call) => clamp(x, null, bound(call.get(1, 'max')))),
  nan_to_num: on((x, call) => {
    const replacements = [
      [Number.isNaN, call.get(1, 'nan') ?? 0],
      [(value: number) => value === Infinity, call.get(2, 'posinf') ?? LARGEST_FLOAT],
      [(value: number) => value === -Infinity, call.get(3, 'neginf') ?? -LARGEST_FLOAT],
    ] as const;
    return replacements.reduce((made, [test, by]) => where(unaryTest(x, test), constant(toNumber(by)), made), x);
  }),
  sum: on((x, call) => sum(x, along(call))),
  mean: on((x, call) => mean(x, along(call))),
  var: on(varianceOf),
  std: on((x, call) => unary(varianceOf(x, call), UNARY['sqrt']!)),
  logsumexp: on((x, call) => logSumExp(x, along(call))),
  log_softmax: logSoftmax,
  softmax: (call) => unary(toVariable(logSoftmax(call)), UNARY['exp']!),
  cumsum: on((x, call) => cumulativeSum(x, toNumber(call.get(1, 'dim')))),
  dot: on((x, call) => sum(binary(x, toVariable(call.get(1, 'tensor')), BINARY['mul']!), {})),
  any: on((x, call) =>
    unaryTest(
      extreme(
        unaryTest(x, (value) => value !== 0),
        1,
        along(call),
      ),
      (value) => value !== 0,
    ),
  ),
  all: on((x, call) =>
    unaryTest(
      extreme(
        unaryTest(x, (value) => value !== 0),
        -1,
        along(call),
      ),
      (value) => value !== 0,
    ),
  ),
  detach: on((x) => constant(x.value)),
  to: (call) => convert(call),
  float: on((x) => x),
  double: on((x) => x),
  half: on((x) => x),
  bfloat16: on((x) => x),
  contiguous: on((x) => x),
  type_as: (call) => convert(call),
  long: on((x) => unary(x, UNARY['trunc']!)),
  int: on((x) => unary(x, UNARY['trunc']!)),
  bool: on((x) => unaryTest(x, (value) => value !== 0)),
  zeros_like: filled(0),
  ones_like: filled(1),
  full_like: (call) => filled(toNumber(call.get(1, 'fill_value')))(call),
  ...SHAPE_OPERATIONS,
};

const bound = (value: Value | undefined): Variable | number | null =>
  value === undefined || value === null ? null : value instanceof Variable ? value : toNumber(value);

/** `var(dim, unbiased, keepdim)`, `var(unbiased)` or `var(dim, correction=…, keepdim=…)`. */
function varianceOf(x: Variable, call: Call): Variable {
  const dim = call.get(1, 'dim') ?? null;
  const [axes, flag] = typeof dim === 'boolean' ? [null, dim] : [dim, call.get(2, 'unbiased')];
  const correction = call.get(-1, 'correction') ?? flag ?? 1;
  const keep = Boolean(call.get(3, 'keepdim') ?? false);
  return variance(x, { axes: axes === null ? undefined : toNumbers(axes), keep }, toNumber(correction));
}

/** A change of type matters where it rounds. */
const convert: Operation = on((x, call) => {
  const type = [1, 2].map((place) => call.get(place, 'dtype')).find((value) => isNamed(value) && isWhole(value));
  // What else it is given, a device or a tensor of the wanted type, changes no value.
  call.get(1, 'other');
  call.get(2, 'device');
  if (!isNamed(type)) return x;
  return type.named.endsWith('bool') ? unaryTest(x, (value) => value !== 0) : unary(x, UNARY['trunc']!);
});

/** Everything that a custom loss may call, by the last part of its name. */
export const OPERATIONS: ReadonlyMap<string, Operation> = new Map(Object.entries(operations));
