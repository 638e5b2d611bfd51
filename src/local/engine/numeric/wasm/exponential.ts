import { op, type Code, type WasmFunction } from './assembler.js';

/** Below this, exp(x) is taken as 0 in float32; above the other, it would overflow. */
const [LOWEST, HIGHEST] = [-87.33, 88.37];
/** ln 2 in two parts, the first short enough to be multiplied exactly. */
const [LN2_HIGH, LN2_LOW] = [0.693359375, -2.1219444e-4];
/** exp(r) ≈ 1 + r + r²·(…) for |r| ≤ ln 2 / 2, highest power first; good to one unit in the last place of float32. */
const POLYNOMIAL = [1.98756915e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1];

/** Replaces the vector in local `x` by its exponential; `n`, `y` and `low` are scratch locals. */
function exponential(x: number, n: number, y: number, low: number): Code {
  const reduce = (part: number): Code => [
    ...op.get(x),
    ...op.get(n),
    ...op.constant(part),
    ...op.vectorMul,
    ...op.vectorSub,
    ...op.set(x),
  ];
  const [first, ...rest] = POLYNOMIAL;
  return [
    ...[...op.get(x), ...op.constant(LOWEST), ...op.vectorLess, ...op.set(low)],
    ...[...op.get(x), ...op.constant(LOWEST), ...op.vectorMax, ...op.constant(HIGHEST), ...op.vectorMin, ...op.set(x)],
    ...[...op.get(x), ...op.constant(Math.LOG2E), ...op.vectorMul, ...op.vectorNearest, ...op.set(n)],
    ...reduce(LN2_HIGH),
    ...reduce(LN2_LOW),
    ...[...op.constant(first!), ...op.set(y)],
    ...rest.flatMap((c) => [
      ...op.get(y),
      ...op.get(x),
      ...op.vectorMul,
      ...op.constant(c),
      ...op.vectorAdd,
      ...op.set(y),
    ]),
    ...[...op.get(y), ...op.get(x), ...op.vectorMul, ...op.get(x), ...op.vectorMul],
    ...[...op.get(x), ...op.vectorAdd, ...op.constant(1), ...op.vectorAdd],
    // 2ⁿ is made from its exponent bits.
    ...[
      ...op.get(n),
      ...op.constant(127),
      ...op.vectorAdd,
      ...op.vectorToInteger,
      ...op.i32(23),
      ...op.integerShiftLeft,
    ],
    ...[...op.vectorMul, ...op.get(low), ...op.vectorAndNot, ...op.set(x)],
  ];
}

/** Runs `body` for `count` floats, four at a time; `locals` are pointers that move along. */
const each = (count: number, locals: readonly number[], body: Code): Code =>
  op.while(
    [...op.i32(0), ...op.get(count), ...op.lt],
    [
      ...body,
      ...locals.flatMap((local) => [...op.get(local), ...op.i32(16), ...op.add, ...op.set(local)]),
      ...[...op.get(count), ...op.i32(4), ...op.sub, ...op.set(count)],
    ],
  );

const copy = (from: number, to: number): Code => [...op.get(from), ...op.set(to)];

/** Combines the four lanes of a vector to one float on the stack. */
const acrossLanes = (vector: number, combine: Code): Code => [
  ...[...op.get(vector), ...op.lane(0), ...op.get(vector), ...op.lane(1), ...combine],
  ...[...op.get(vector), ...op.lane(2), ...op.get(vector), ...op.lane(3), ...combine, ...combine],
];

/** 1 / (1 + exp(−g)) of the vector in `g`, left in `x`. */
const sigmoid = (g: number, x: number, n: number, y: number, low: number): Code => [
  ...[...op.zero, ...op.get(g), ...op.vectorSub, ...op.set(x)],
  ...exponential(x, n, y, low),
  ...[...op.constant(1), ...op.constant(1), ...op.get(x), ...op.vectorAdd, ...op.vectorDiv, ...op.set(x)],
];

/** `swiglu(gate, up, out, count)`: out = silu(gate) · up. */
const swiglu: WasmFunction = (() => {
  const [GATE, UP, OUT, COUNT, X, N, Y, LOW, G] = [0, 1, 2, 3, 4, 5, 6, 7, 8] as const;
  const body = each(
    COUNT,
    [GATE, UP, OUT],
    [
      ...[...op.get(GATE), ...op.load(0), ...op.set(G)],
      ...sigmoid(G, X, N, Y, LOW),
      ...[...op.get(OUT), ...op.get(G), ...op.get(X), ...op.vectorMul],
      ...[...op.get(UP), ...op.load(0), ...op.vectorMul, ...op.store(0)],
    ],
  );
  return { name: 'swiglu', parameters: ['i32', 'i32', 'i32', 'i32'], integers: 0, vectors: 5, body };
})();

/** `swigluBackward(gate, up, dOut, count)`: replaces gate and up by their gradients. */
const swigluBackward: WasmFunction = (() => {
  const [GATE, UP, D_OUT, COUNT, X, N, Y, LOW, G, D] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] as const;
  const body = each(
    COUNT,
    [GATE, UP, D_OUT],
    [
      ...[...op.get(GATE), ...op.load(0), ...op.set(G)],
      ...sigmoid(G, X, N, Y, LOW),
      // D = dOut · sigmoid; d gate = D · up · (1 + g · (1 − sigmoid)); d up = D · g.
      ...[...op.get(D_OUT), ...op.load(0), ...op.get(X), ...op.vectorMul, ...op.set(D)],
      ...[...op.get(GATE), ...op.get(D), ...op.get(UP), ...op.load(0), ...op.vectorMul],
      ...[
        ...op.constant(1),
        ...op.get(G),
        ...op.constant(1),
        ...op.get(X),
        ...op.vectorSub,
        ...op.vectorMul,
        ...op.vectorAdd,
      ],
      ...[...op.vectorMul, ...op.store(0)],
      ...[...op.get(UP), ...op.get(D), ...op.get(G), ...op.vectorMul, ...op.store(0)],
    ],
  );
  return { name: 'swigluBackward', parameters: ['i32', 'i32', 'i32', 'i32'], integers: 0, vectors: 6, body };
})();

/** Largest of `count` floats from `row`, in all lanes of `max`; `at` and `left` are scratch. */
const rowMax = (row: number, count: number, at: number, left: number, max: number): Code => [
  ...copy(row, at),
  ...copy(count, left),
  ...[...op.constant(-Infinity), ...op.set(max)],
  ...each(left, [at], [...op.get(max), ...op.get(at), ...op.load(0), ...op.vectorMax, ...op.set(max)]),
  ...[...acrossLanes(max, op.floatMax), ...op.splat, ...op.set(max)],
];

/** `softmax(row, count, scale)`: the row becomes softmax(scale · row). */
const softmax: WasmFunction = (() => {
  const [ROW, COUNT, SCALE, AT, LEFT, X, N, Y, LOW, MAX, SUM] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10] as const;
  const body = [
    ...rowMax(ROW, COUNT, AT, LEFT, MAX),
    ...copy(ROW, AT),
    ...copy(COUNT, LEFT),
    ...[...op.zero, ...op.set(SUM)],
    ...each(
      LEFT,
      [AT],
      [
        ...[
          ...op.get(AT),
          ...op.load(0),
          ...op.get(MAX),
          ...op.vectorSub,
          ...op.get(SCALE),
          ...op.splat,
          ...op.vectorMul,
          ...op.set(X),
        ],
        ...exponential(X, N, Y, LOW),
        ...[...op.get(AT), ...op.get(X), ...op.store(0)],
        ...[...op.get(SUM), ...op.get(X), ...op.vectorAdd, ...op.set(SUM)],
      ],
    ),
    ...[...op.constant(1), ...acrossLanes(SUM, op.floatAdd), ...op.splat, ...op.vectorDiv, ...op.set(SUM)],
    ...each(
      COUNT,
      [ROW],
      [...op.get(ROW), ...op.get(ROW), ...op.load(0), ...op.get(SUM), ...op.vectorMul, ...op.store(0)],
    ),
  ];
  return { name: 'softmax', parameters: ['i32', 'i32', 'f32'], integers: 2, vectors: 6, body };
})();

/** `sumExponentials(row, count, out)`: out[0] = max, out[1] = Σ exp(x − max). */
const sumExponentials: WasmFunction = (() => {
  const [ROW, COUNT, OUT, AT, LEFT, X, N, Y, LOW, MAX, SUM] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10] as const;
  const body = [
    ...rowMax(ROW, COUNT, AT, LEFT, MAX),
    ...[...op.zero, ...op.set(SUM)],
    ...each(
      COUNT,
      [ROW],
      [
        ...[...op.get(ROW), ...op.load(0), ...op.get(MAX), ...op.vectorSub, ...op.set(X)],
        ...exponential(X, N, Y, LOW),
        ...[...op.get(SUM), ...op.get(X), ...op.vectorAdd, ...op.set(SUM)],
      ],
    ),
    ...[...op.get(OUT), ...op.get(MAX), ...op.lane(0), ...op.floatStore(0)],
    ...[...op.get(OUT), ...acrossLanes(SUM, op.floatAdd), ...op.floatStore(4)],
  ];
  return { name: 'sumExponentials', parameters: ['i32', 'i32', 'i32'], integers: 2, vectors: 6, body };
})();

/** `scaledExponential(row, count, shift, factor)`: the row becomes factor · exp(row − shift). */
const scaledExponential: WasmFunction = (() => {
  const [ROW, COUNT, SHIFT, FACTOR, X, N, Y, LOW] = [0, 1, 2, 3, 4, 5, 6, 7] as const;
  const body = each(
    COUNT,
    [ROW],
    [
      ...[...op.get(ROW), ...op.load(0), ...op.get(SHIFT), ...op.splat, ...op.vectorSub, ...op.set(X)],
      ...exponential(X, N, Y, LOW),
      ...[...op.get(ROW), ...op.get(X), ...op.get(FACTOR), ...op.splat, ...op.vectorMul, ...op.store(0)],
    ],
  );
  return { name: 'scaledExponential', parameters: ['i32', 'i32', 'f32', 'f32'], integers: 0, vectors: 4, body };
})();

/** The kernels with an exponential in them. Pointers are in bytes, counts multiples of 4. */
export const exponentials: readonly WasmFunction[] = [
  swiglu,
  swigluBackward,
  softmax,
  sumExponentials,
  scaledExponential,
];
