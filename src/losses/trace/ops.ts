import type { Tensor } from './Tensor.js';
import { List, type Operand, type Trace } from './Trace.js';

/** Operations on several values, and helpers for what losses do all the time. Everything else is a method of {@link Tensor}. */
export interface LossOps {
  /** `yes` where the condition holds, `no` elsewhere: what a branch on a value becomes. */
  readonly where: (condition: Tensor, yes: Operand, no: Operand) => Tensor;
  /** Σ weights · x. */
  readonly weightedSum: (x: Tensor, weights: Tensor) => Tensor;
  /** Σ weights · x / Σ weights, and 0 where all weights are 0. */
  readonly weightedMean: (x: Tensor, weights: Tensor) => Tensor;
  /** Joins along a dimension; default the first. */
  readonly cat: (parts: readonly Tensor[], dim?: number) => Tensor;
  /** Joins along a new dimension; default the first. */
  readonly stack: (parts: readonly Tensor[], dim?: number) => Tensor;
  /** 1 − x and the like, if the number stands first. */
  readonly sub: (a: Operand, b: Operand) => Tensor;
  /** a / b, element by element. */
  readonly div: (a: Operand, b: Operand) => Tensor;
  /** The smaller, and the larger, of two values at every place. */
  readonly minimum: (a: Tensor, b: Operand) => Tensor;
  /** The larger of the two, element by element. */
  readonly maximum: (a: Tensor, b: Operand) => Tensor;
  /** Zeros and ones in the shape of a value. */
  readonly zerosLike: (x: Tensor) => Tensor;
  /** Ones in the shape of x. */
  readonly onesLike: (x: Tensor) => Tensor;
  /** A value whose gradient is that of `gradientOf`: `value` and `gradientOf` are added so that only the gradient of one counts. */
  readonly withGradientOf: (value: Tensor, gradientOf: Tensor) => Tensor;
}

/** So small that it changes no mean of weights that anyone would give, and keeps 0 / 0 away. */
const TINY = 1e-12;

export function opsOf(trace: Trace): LossOps {
  const operations = operationsOf(trace);
  const entered = Object.entries(operations).map(([name, operation]) => {
    const called = (...given: unknown[]): unknown =>
      trace.enter(called, () => (operation as (...args: unknown[]) => unknown)(...given));
    return [name, called] as const;
  });
  return Object.fromEntries(entered) as unknown as LossOps;
}

function operationsOf(trace: Trace): LossOps {
  const call = (target: string, ...args: readonly unknown[]): Tensor => trace.call({ function: target }, args);
  return {
    where: (condition, yes, no) => call('torch.where', condition, yes, no),
    weightedSum: (x, weights) => x.mul(weights).sum(),
    weightedMean: (x, weights) =>
      x
        .mul(weights)
        .sum()
        .div(weights.sum().clamp({ min: TINY })),
    cat: (parts, dim = 0) => call('torch.cat', new List(parts), dim),
    stack: (parts, dim = 0) => call('torch.stack', new List(parts), dim),
    sub: (a, b) => call('operator.sub', a, b),
    div: (a, b) => call('operator.truediv', a, b),
    minimum: (a, b) => a.minimum(b),
    maximum: (a, b) => a.maximum(b),
    zerosLike: (x) => call('torch.zeros_like', x),
    onesLike: (x) => call('torch.ones_like', x),
    withGradientOf: (value, gradientOf) => value.detach().add(gradientOf).sub(gradientOf.detach()),
  };
}
