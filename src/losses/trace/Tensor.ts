import { Index, type Operand, type Recorded, type Target } from './Trace.js';
import { WATCH } from './watch.js';

const NODE: unique symbol = Symbol('node');

/** The node that a tensor stands for. */
export const nodeOf = (tensor: Tensor): Recorded => tensor[NODE];

const fn = (name: string): Target => ({ function: name });
const method = (name: string): Target => ({ method: name });

/** Along one dimension (negative: from the end), or over all values where `dim` is absent. */
export interface Along {
  /** The dimension to reduce; negative counts from the last. Default: all of them. */
  readonly dim?: number;
  /** Whether the dimension stays, with extent 1. Default false. */
  readonly keepDim?: boolean;
}

/**
 * A value of a loss that is being recorded: an input, or what operations made of inputs.
 *
 * It holds no numbers: those come with the data. So nothing in JavaScript can look at it: arithmetic operators,
 * comparisons, loops and indexing are errors that say what to call instead. Values of different shapes are repeated to fit
 * each other, as in PyTorch and NumPy.
 */
export class Tensor {
  readonly [NODE]: Recorded;

  /** Made by `defineLoss`. */
  constructor(recorded: Recorded) {
    this[NODE] = recorded;
    return new Proxy(this, WATCH);
  }

  /** this + other, element by element. */
  add(other: Operand): Tensor {
    return this.#call(fn('operator.add'), other);
  }
  /** this − other, element by element. */
  sub(other: Operand): Tensor {
    return this.#call(fn('operator.sub'), other);
  }
  /** this · other, element by element. */
  mul(other: Operand): Tensor {
    return this.#call(fn('operator.mul'), other);
  }
  /** this / other, element by element. */
  div(other: Operand): Tensor {
    return this.#call(fn('operator.truediv'), other);
  }
  /** this to the power of the exponent, element by element. */
  pow(exponent: Operand): Tensor {
    return this.#call(fn('operator.pow'), exponent);
  }
  /** −this. */
  neg(): Tensor {
    return this.#call(fn('operator.neg'));
  }
  /** e to the power of this, element by element. */
  exp(): Tensor {
    return this.#call(fn('torch.exp'));
  }
  /** e to the power of this, minus 1; exact near 0. */
  expm1(): Tensor {
    return this.#call(fn('torch.expm1'));
  }
  /** Natural logarithm, element by element. */
  log(): Tensor {
    return this.#call(fn('torch.log'));
  }
  /** Natural logarithm of 1 + this; exact near 0. */
  log1p(): Tensor {
    return this.#call(fn('torch.log1p'));
  }
  /** Square root, element by element. */
  sqrt(): Tensor {
    return this.#call(fn('torch.sqrt'));
  }
  /** this · this, element by element. */
  square(): Tensor {
    return this.#call(fn('torch.square'));
  }
  /** Absolute value, element by element. */
  abs(): Tensor {
    return this.#call(fn('torch.abs'));
  }
  /** Hyperbolic tangent, element by element. */
  tanh(): Tensor {
    return this.#call(fn('torch.tanh'));
  }
  /** The larger of this and 0, element by element. */
  relu(): Tensor {
    return this.#call(fn('torch.relu'));
  }
  /** 1 / (1 + e to the power of −this), element by element. */
  sigmoid(): Tensor {
    return this.#call(fn('torch.sigmoid'));
  }
  /** log σ(x), exact also for large negative x. */
  logSigmoid(): Tensor {
    return this.#call(fn('torch._C._nn.log_sigmoid'));
  }
  /** log(1 + eˣ). */
  softplus(): Tensor {
    return this.#call(fn('torch._C._nn.softplus'));
  }
  /** The same value, through which no gradient flows. */
  detach(): Tensor {
    return this.#call(method('detach'));
  }

  /** Comparisons give 1 where they hold and 0 elsewhere, for `ops.where` and for multiplying. */
  gt(other: Operand): Tensor {
    return this.#call(fn('operator.gt'), other);
  }
  /** Where this ≥ other. */
  ge(other: Operand): Tensor {
    return this.#call(fn('operator.ge'), other);
  }
  /** Where this < other. */
  lt(other: Operand): Tensor {
    return this.#call(fn('operator.lt'), other);
  }
  /** Where this ≤ other. */
  le(other: Operand): Tensor {
    return this.#call(fn('operator.le'), other);
  }
  /** Where both are equal. */
  eq(other: Operand): Tensor {
    return this.#call(fn('operator.eq'), other);
  }
  /** Where they differ. */
  ne(other: Operand): Tensor {
    return this.#call(fn('operator.ne'), other);
  }
  /** Where both are true. */
  and(other: Tensor): Tensor {
    return this.#call(fn('torch.logical_and'), other);
  }
  /** Where at least one is true. */
  or(other: Tensor): Tensor {
    return this.#call(fn('torch.logical_or'), other);
  }
  /** Where this is false. */
  not(): Tensor {
    return this.#call(fn('torch.logical_not'));
  }

  /** A comparison as numbers, 1 and 0, for sums and means. */
  float(): Tensor {
    return this.#call(method('float'));
  }

  /** Values below `min` or above `max` become these; gradient flows through those in between only. */
  clamp({ min, max, ...others }: { readonly min?: number; readonly max?: number }): Tensor {
    this[NODE].trace.refuseOptions(others);
    if (min === undefined && max === undefined) throw this[NODE].trace.error('clamp needs { min }, { max } or both');
    const bounds = { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
    return this[NODE].trace.call(fn('torch.clamp'), [this], bounds);
  }
  /** The larger of this and other, element by element. */
  maximum(other: Operand): Tensor {
    return typeof other === 'number' ? this.clamp({ min: other }) : this.#call(fn('torch.maximum'), other);
  }
  /** The smaller of this and other, element by element. */
  minimum(other: Operand): Tensor {
    return typeof other === 'number' ? this.clamp({ max: other }) : this.#call(fn('torch.minimum'), other);
  }

  /** Over all values, or along a dimension: `sum(-1)`, `sum({ dim: -1, keepDim: true })`. So are the next ones. */
  sum(along: Along | number = {}): Tensor {
    return this.#reduce(method('sum'), along);
  }
  /** The mean, over all elements or along one dimension. */
  mean(along: Along | number = {}): Tensor {
    return this.#reduce(method('mean'), along);
  }
  /** The largest value. */
  max(along: Along | number = {}): Tensor {
    return this.#reduce(fn('torch.amax'), along);
  }
  /** The smallest value. */
  min(along: Along | number = {}): Tensor {
    return this.#reduce(fn('torch.amin'), along);
  }
  /** log Σ eˣ along one dimension; default the last. */
  logSumExp(along: Along | number = {}): Tensor {
    return this.#reduce(fn('torch.logsumexp'), typeof along === 'number' ? along : { dim: -1, ...along });
  }
  /** x − log Σ eˣ along one dimension; default the last. */
  logSoftmax(dim = -1): Tensor {
    return this[NODE].trace.call(fn('torch.log_softmax'), [this], { dim });
  }
  /** Softmax along a dimension. Default: the last. */
  softmax(dim = -1): Tensor {
    return this[NODE].trace.call(fn('torch.softmax'), [this], { dim });
  }
  /** Running sums along one dimension; default the last. */
  cumsum(dim = -1): Tensor {
    return this[NODE].trace.call(fn('torch.cumsum'), [this], { dim });
  }

  /** A new dimension of extent 1 at this place. */
  unsqueeze(dim: number): Tensor {
    return this[NODE].trace.call(method('unsqueeze'), [this, dim]);
  }
  /** One row (or value) of the first dimension; negative places count from the end. */
  at(place: number): Tensor {
    return this[NODE].trace.call(fn('operator.getitem'), [this, place]);
  }
  /** Some rows (or values) of the first dimension. */
  slice(start: number | null, end: number | null = null): Tensor {
    return this[NODE].trace.call(fn('operator.getitem'), [this, new Index({ slice: [start, end, null] })]);
  }
  /** How many values there are. */
  count(): Tensor {
    return this[NODE].trace.call(method('sum'), [this[NODE].trace.call(fn('torch.ones_like'), [this])]);
  }

  /** What console.log shows of it. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    const { trace, what, line } = this[NODE];
    return `Tensor { ${what} of the loss ${trace.loss}, ${line() ?? 'somewhere'}: no values while it is recorded }`;
  }

  #call(target: Target, ...others: readonly unknown[]): Tensor {
    return this[NODE].trace.call(target, [this, ...others]);
  }

  #reduce(target: Target, along: Along | number): Tensor {
    const { dim, keepDim = false, ...others } = typeof along === 'number' ? { dim: along } : along;
    this[NODE].trace.refuseOptions(others);
    const kwargs = { ...(dim === undefined ? {} : { dim }), ...(keepDim ? { keepdim: true } : {}) };
    return this[NODE].trace.call(target, [this], kwargs);
  }
}
