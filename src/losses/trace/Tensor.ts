import { Index, type Operand, type Recorded, type Target } from './Trace.js';
import { WATCH } from './watch.js';

const NODE: unique symbol = Symbol('node');

/** The node that a tensor stands for. */
export const nodeOf = (tensor: Tensor): Recorded => tensor[NODE];

const fn = (name: string): Target => ({ function: name });
const method = (name: string): Target => ({ method: name });

/** Along one dimension (negative: from the end), or over all values where `dim` is absent. */
export interface Along {
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

  add(other: Operand): Tensor {
    return this.#call(fn('operator.add'), other);
  }
  sub(other: Operand): Tensor {
    return this.#call(fn('operator.sub'), other);
  }
  mul(other: Operand): Tensor {
    return this.#call(fn('operator.mul'), other);
  }
  div(other: Operand): Tensor {
    return this.#call(fn('operator.truediv'), other);
  }
  pow(exponent: Operand): Tensor {
    return this.#call(fn('operator.pow'), exponent);
  }
  neg(): Tensor {
    return this.#call(fn('operator.neg'));
  }
  exp(): Tensor {
    return this.#call(fn('torch.exp'));
  }
  expm1(): Tensor {
    return this.#call(fn('torch.expm1'));
  }
  log(): Tensor {
    return this.#call(fn('torch.log'));
  }
  log1p(): Tensor {
    return this.#call(fn('torch.log1p'));
  }
  sqrt(): Tensor {
    return this.#call(fn('torch.sqrt'));
  }
  square(): Tensor {
    return this.#call(fn('torch.square'));
  }
  abs(): Tensor {
    return this.#call(fn('torch.abs'));
  }
  tanh(): Tensor {
    return this.#call(fn('torch.tanh'));
  }
  relu(): Tensor {
    return this.#call(fn('torch.relu'));
  }
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
  ge(other: Operand): Tensor {
    return this.#call(fn('operator.ge'), other);
  }
  lt(other: Operand): Tensor {
    return this.#call(fn('operator.lt'), other);
  }
  le(other: Operand): Tensor {
    return this.#call(fn('operator.le'), other);
  }
  eq(other: Operand): Tensor {
    return this.#call(fn('operator.eq'), other);
  }
  ne(other: Operand): Tensor {
    return this.#call(fn('operator.ne'), other);
  }
  and(other: Tensor): Tensor {
    return this.#call(fn('torch.logical_and'), other);
  }
  or(other: Tensor): Tensor {
    return this.#call(fn('torch.logical_or'), other);
  }
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
  maximum(other: Operand): Tensor {
    return typeof other === 'number' ? this.clamp({ min: other }) : this.#call(fn('torch.maximum'), other);
  }
  minimum(other: Operand): Tensor {
    return typeof other === 'number' ? this.clamp({ max: other }) : this.#call(fn('torch.minimum'), other);
  }

  /** Over all values, or along a dimension: `sum(-1)`, `sum({ dim: -1, keepDim: true })`. So are the next ones. */
  sum(along: Along | number = {}): Tensor {
    return this.#reduce(method('sum'), along);
  }
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
