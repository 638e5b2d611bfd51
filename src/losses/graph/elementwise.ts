import { broadcastPlaces, broadcastShapes, ndArray } from './ndArray.js';
import { constant, mask, result, Variable } from './variable.js';

/** A function of one number, and its derivative given argument and result. */
export interface Unary {
  readonly f: (x: number) => number;
  /** Absent: the derivative is 0 everywhere. */
  readonly d?: (x: number, y: number) => number;
}

const sigmoid = (x: number): number => (x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x)));
const softplus = (x: number): number => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));

export const UNARY: Readonly<Record<string, Unary>> = {
  abs: { f: Math.abs, d: (x) => Math.sign(x) },
  ceil: { f: Math.ceil },
  clone: { f: (x) => x, d: () => 1 },
  cos: { f: Math.cos, d: (x) => -Math.sin(x) },
  exp: { f: Math.exp, d: (_, y) => y },
  expm1: { f: Math.expm1, d: (_, y) => y + 1 },
  floor: { f: Math.floor },
  log: { f: Math.log, d: (x) => 1 / x },
  log10: { f: Math.log10, d: (x) => 1 / (x * Math.LN10) },
  log1p: { f: Math.log1p, d: (x) => 1 / (1 + x) },
  log2: { f: Math.log2, d: (x) => 1 / (x * Math.LN2) },
  logsigmoid: { f: (x) => -softplus(-x), d: (x) => sigmoid(-x) },
  neg: { f: (x) => -x, d: () => -1 },
  reciprocal: { f: (x) => 1 / x, d: (_, y) => -y * y },
  relu: { f: (x) => Math.max(x, 0), d: (x) => (x > 0 ? 1 : 0) },
  round: { f: roundHalfToEven },
  rsqrt: { f: (x) => 1 / Math.sqrt(x), d: (_, y) => -0.5 * y ** 3 },
  sigmoid: { f: sigmoid, d: (_, y) => y * (1 - y) },
  sign: { f: Math.sign },
  silu: { f: (x) => x * sigmoid(x), d: (x) => sigmoid(x) * (1 + x * (1 - sigmoid(x))) },
  sin: { f: Math.sin, d: (x) => Math.cos(x) },
  softplus: { f: softplus, d: (x) => sigmoid(x) },
  sqrt: { f: Math.sqrt, d: (_, y) => 0.5 / y },
  square: { f: (x) => x * x, d: (x) => 2 * x },
  tanh: { f: Math.tanh, d: (_, y) => 1 - y * y },
  trunc: { f: Math.trunc },
};

function roundHalfToEven(x: number): number {
  const below = Math.floor(x);
  if (x - below !== 0.5) return Math.round(x);
  return below % 2 === 0 ? below : below + 1;
}

export const UNARY_TESTS: Readonly<Record<string, (x: number) => boolean>> = {
  isfinite: Number.isFinite,
  isinf: (x) => Math.abs(x) === Infinity,
  isnan: Number.isNaN,
  logical_not: (x) => x === 0,
};

/** A function of two numbers, and its derivatives by each. */
export interface Binary {
  readonly f: (a: number, b: number) => number;
  readonly da?: (a: number, b: number, y: number) => number;
  readonly db?: (a: number, b: number, y: number) => number;
}

export const BINARY: Readonly<Record<string, Binary>> = {
  add: { f: (a, b) => a + b, da: () => 1, db: () => 1 },
  sub: { f: (a, b) => a - b, da: () => 1, db: () => -1 },
  mul: { f: (a, b) => a * b, da: (_, b) => b, db: (a) => a },
  div: { f: (a, b) => a / b, da: (_, b) => 1 / b, db: (_, b, y) => -y / b },
  floordiv: { f: (a, b) => Math.floor(a / b) },
  pow: {
    f: (a, b) => a ** b,
    da: (a, b) => (b === 0 ? 0 : b * a ** (b - 1)),
    db: (a, _, y) => (a === 0 ? 0 : y * Math.log(a)),
  },
  // Where both are the same, half of the derivative goes to each.
  maximum: {
    f: (a, b) => (Number.isNaN(a) || Number.isNaN(b) ? NaN : Math.max(a, b)),
    da: (a, b) => (a > b ? 1 : a === b ? 0.5 : 0),
    db: (a, b) => (b > a ? 1 : a === b ? 0.5 : 0),
  },
  minimum: {
    f: (a, b) => (Number.isNaN(a) || Number.isNaN(b) ? NaN : Math.min(a, b)),
    da: (a, b) => (a < b ? 1 : a === b ? 0.5 : 0),
    db: (a, b) => (b < a ? 1 : a === b ? 0.5 : 0),
  },
};

export const BINARY_TESTS: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b,
  lt: (a, b) => a < b,
  le: (a, b) => a <= b,
  gt: (a, b) => a > b,
  ge: (a, b) => a >= b,
  logical_and: (a, b) => a !== 0 && b !== 0,
  logical_or: (a, b) => a !== 0 || b !== 0,
  logical_xor: (a, b) => (a !== 0) !== (b !== 0),
};

export function unary(x: Variable, { f, d }: Unary): Variable {
  const data = x.data.map(f);
  if (d === undefined) return constant(ndArray(x.shape, data));
  return result(x.shape, data, [x], (gradient) =>
    gradient.forEach((g, i) => x.receive(i, g * d(x.data[i]!, data[i]!))),
  );
}

export const unaryTest = (x: Variable, test: (x: number) => boolean): Variable =>
  mask(
    x.shape,
    x.data.map((value) => Number(test(value))),
  );

export function binary(a: Variable, b: Variable, { f, da, db }: Binary): Variable {
  const { shape, data, atA, atB } = combine(a, b, f);
  if (da === undefined || db === undefined) return constant(ndArray(shape, data));
  return result(shape, data, [a, b], (gradient) =>
    gradient.forEach((g, i) => {
      const [x, y] = [a.data[atA[i]!]!, b.data[atB[i]!]!];
      if (a.moves) a.receive(atA[i]!, g * da(x, y, data[i]!));
      if (b.moves) b.receive(atB[i]!, g * db(x, y, data[i]!));
    }),
  );
}

export function binaryTest(a: Variable, b: Variable, test: (a: number, b: number) => boolean): Variable {
  const { shape, data } = combine(a, b, (x, y) => Number(test(x, y)));
  return mask(shape, data);
}

function combine(a: Variable, b: Variable, f: (a: number, b: number) => number) {
  const shape = broadcastShapes(a.shape, b.shape);
  const [atA, atB] = [broadcastPlaces(a.shape, shape), broadcastPlaces(b.shape, shape)];
  const data = Float64Array.from(atA, (place, index) => f(a.data[place]!, b.data[atB[index]!]!));
  return { shape, data, atA, atB };
}

/** `yes` where the condition holds, `no` elsewhere; only the chosen one is derived. */
export function where(condition: Variable, yes: Variable, no: Variable): Variable {
  const shape = broadcastShapes(condition.shape, broadcastShapes(yes.shape, no.shape));
  const [atC, atY, atN] = [condition, yes, no].map((variable) => broadcastPlaces(variable.shape, shape)) as [
    Int32Array,
    Int32Array,
    Int32Array,
  ];
  const chosen = (i: number): readonly [Variable, number] =>
    condition.data[atC[i]!] !== 0 ? [yes, atY[i]!] : [no, atN[i]!];
  const data = Float64Array.from(atC, (_, i) => {
    const [variable, place] = chosen(i);
    return variable.data[place]!;
  });
  return result(shape, data, [yes, no], (gradient) =>
    gradient.forEach((g, i) => {
      const [variable, place] = chosen(i);
      if (variable.moves) variable.receive(place, g);
    }),
  );
}

/**
 * The derivative goes through between the bounds. On a bound that is a number it is 0, on one that is a tensor half of it goes to each, as in PyTorch since 2.15;
 * before, all of it went through.
 */
export function clamp(x: Variable, low: Variable | number | null, high: Variable | number | null): Variable {
  return below(above(x, low), high);
}

function above(x: Variable, low: Variable | number | null): Variable {
  if (low === null) return x;
  if (low instanceof Variable) return binary(x, low, BINARY['maximum']!);
  return where(
    unaryTest(x, (value) => value <= low),
    constant(low),
    x,
  );
}

function below(x: Variable, high: Variable | number | null): Variable {
  if (high === null) return x;
  if (high instanceof Variable) return binary(x, high, BINARY['minimum']!);
  return where(
    unaryTest(x, (value) => value >= high),
    constant(high),
    x,
  );
}
