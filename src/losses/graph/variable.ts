import { ndArray, scalar, sizeOf, type NdArray } from './ndArray.js';

/** What an operation does with the derivative of the loss by its result: adds to the derivatives of its arguments. */
type Backward = (gradient: Float64Array) => void;

let count = 0;

/** A value of the graph, and the derivative of the loss by it once {@link backward} has run. */
export class Variable {
  gradient: Float64Array | undefined;
  /** Results come after what they were made from, so going back in this order visits each after all its uses. */
  readonly order = count++;

  constructor(
    readonly value: NdArray,
    readonly parents: readonly Variable[] = [],
    readonly backward?: Backward,
    readonly isLeaf = false,
  ) {}

  get shape(): readonly number[] {
    return this.value.shape;
  }

  get data(): Float64Array {
    return this.value.data;
  }

  /** Whether the loss may depend on the logprobs through this. */
  get moves(): boolean {
    return this.isLeaf || this.backward !== undefined;
  }

  /** Adds to the derivative by this value. */
  receive(index: number, amount: number): void {
    this.gradient ??= new Float64Array(this.data.length);
    this.gradient[index]! += amount;
  }
}

export const constant = (value: NdArray | number | boolean): Variable =>
  new Variable(typeof value === 'object' ? value : scalar(value));

export const leaf = (value: NdArray): Variable => new Variable(value, [], undefined, true);

/** A result whose derivative goes back to its parents, if any of them depends on the logprobs. */
export const result = (
  shape: readonly number[],
  data: Float64Array,
  parents: readonly Variable[],
  backward: Backward,
): Variable =>
  parents.some((parent) => parent.moves)
    ? new Variable(ndArray(shape, data), parents, backward)
    : new Variable(ndArray(shape, data));

export const mask = (shape: readonly number[], data: Float64Array): Variable =>
  new Variable(ndArray(shape, data, true));

/** Finds the derivatives of a scalar by everything it was made from. */
export function backward(loss: Variable): void {
  const reached = new Set<Variable>();
  const open = [loss];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (reached.has(next)) continue;
    reached.add(next);
    open.push(...next.parents.filter((parent) => parent.moves));
  }
  loss.gradient = new Float64Array(sizeOf(loss.shape)).fill(1);
  for (const variable of [...reached].sort((a, b) => b.order - a.order)) {
    if (variable.gradient !== undefined) variable.backward?.(variable.gradient);
  }
}
