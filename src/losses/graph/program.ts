import { ValidationError } from '../../wire/tinkerError.js';
import type { CustomLossInput, CustomLossNode } from '../../wire/customLoss.js';
import { ndArray, type NdArray } from './ndArray.js';
import { ALIASES } from './aliases.js';
import type { Call, Operation } from './call.js';
import { MOST_NODES } from './limits.js';
import { OPERATIONS } from './operations.js';
import { decodeArgument, isDictionary, isNamed, isWhole, toNumber, toVariable, type Value } from './values.js';
import { backward, constant, leaf, Variable } from './variable.js';

const MODULES = /^(?:torch|operator|math|builtins)(?:\..*)?\.([^.]+)$|^([^.]+)$/;
const METRIC = /^custom\/[a-z0-9_./-]{1,64}:(sum|mean)$/;
const MOST_INPUTS = 16;
const DETACH = OPERATIONS.get('detach');

/** One input of a loss: float64 values and their shape. */
export type ProgramInput = Pick<NdArray, 'shape' | 'data'>;

/** What a loss makes of its inputs. */
export interface ProgramResult {
  readonly loss: number;
  /** The derivative by every logprob, row major: `gradients` of the first input, rounded as it is sent. */
  readonly gradient: Float32Array;
  /** The derivatives by each of the inputs in `derivedBy`, in that order. */
  readonly gradients: readonly Float64Array[];
  readonly metrics: Readonly<Record<string, number>>;
}

/** A loss, or a metric of it, that is not one number. */
export class NotScalarError extends ValidationError {
  constructor(
    readonly what: string,
    readonly shape: readonly number[],
  ) {
    super(`${what} must be one number, not of shape [${shape.join(', ')}]: reduce it with sum() or mean()`);
  }
}

/** A loss as a graph, checked and ready to run. */
export class Program {
  readonly #operations: readonly (Operation | undefined)[];

  /**
   * `derivedBy` names the inputs that depend on the model's weights.
   *
   * @throws ValidationError naming what cannot be run.
   */
  constructor(
    readonly inputs: readonly Pick<CustomLossInput, 'name'>[],
    private readonly nodes: readonly CustomLossNode[],
    readonly derivedBy: readonly string[] = ['logprobs'],
  ) {
    if (inputs[0]?.name !== derivedBy[0])
      throw new ValidationError(`the first input of a custom loss must be ${derivedBy[0]}`);
    if (inputs.length > MOST_INPUTS * derivedBy.length)
      throw new ValidationError(`a custom loss takes at most ${MOST_INPUTS} inputs`);
    if (nodes.length > MOST_NODES) throw new ValidationError(`a custom loss has at most ${MOST_NODES} nodes`);
    const parameters = nodes.filter(({ op }) => op === 'placeholder').map(({ target }) => target);
    if (parameters.join() !== inputs.map(({ name }) => name).join()) {
      throw new ValidationError(
        `the graph takes (${parameters.join(', ')}), the inputs say (${inputs.map((i) => i.name).join(', ')})`,
      );
    }
    if (nodes.at(-1)?.op !== 'output') throw new ValidationError('the graph does not end with its output');
    this.#operations = nodes.map(operationOf);
    checkReferences(nodes);
  }

  /**
   * The loss of one datum, its derivative by every logprob, and its metrics. `held` has the values of detached nodes: those it lacks are
   * added, those it has are used instead of new ones, as finite differences need it.
   */
  run(given: readonly ProgramInput[], held?: Map<string, Value>): ProgramResult {
    const values = new Map<string, Value>();
    const inputs = given.map(({ shape, data }, index) =>
      this.derivedBy.includes(this.inputs[index]!.name) ? leaf(ndArray(shape, data)) : constant(ndArray(shape, data)),
    );
    const leaves = inputs.filter(({ isLeaf }) => isLeaf);
    const resolve = (name: string) => values.get(name)!;
    let next = 0;
    for (const [index, { op, name, target, args = [], kwargs = {} }] of this.nodes.entries()) {
      if (op === 'placeholder') values.set(name, inputs[next++]!);
      else if (op === 'output') return finish(decodeArgument(args[0], resolve), leaves);
      else {
        const isHeld = held !== undefined && this.#operations[index] === DETACH;
        const known = isHeld ? held.get(name) : undefined;
        if (known !== undefined) {
          values.set(name, known);
          continue;
        }
        const call = new ReadCall(
          args.map((argument) => decodeArgument(argument, resolve)),
          Object.fromEntries(Object.entries(kwargs).map(([key, value]) => [key, decodeArgument(value, resolve)])),
        );
        const made = this.#operations[index]!(call);
        call.checkAllRead(target.slice(target.lastIndexOf('.') + 1));
        if (isHeld) held.set(name, made);
        values.set(name, made);
      }
    }
    throw new ValidationError('the graph has no output');
  }
}

function operationOf({ op, target }: CustomLossNode): Operation | undefined {
  if (op === 'placeholder' || op === 'output') return undefined;
  const match = MODULES.exec(target);
  const name = match?.[1] ?? match?.[2] ?? target;
  const plain = name.replace(/^_+/, '');
  const operation = OPERATIONS.get(ALIASES.get(plain) ?? plain);
  if (match === null || operation === undefined || (op === 'call_method' && target.includes('.'))) {
    throw new ValidationError(`cannot run ${target} in a custom loss`);
  }
  return operation;
}

/** A node may use only those before it. */
function checkReferences(nodes: readonly CustomLossNode[]): void {
  const known = new Set<string>();
  for (const { name, args = [], kwargs = {} } of nodes) {
    const check = (argument: unknown): void => {
      if (typeof argument !== 'object' || argument === null) return;
      const reference = (argument as { ref?: unknown }).ref;
      if (typeof reference === 'string' && !known.has(reference)) {
        throw new ValidationError(`node ${name} uses ${reference}, which is not defined before it`);
      }
      Object.values(argument).forEach(check);
    };
    check(args);
    check(kwargs);
    if (known.has(name)) throw new ValidationError(`two nodes are called ${name}`);
    known.add(name);
  }
}

/** Arguments that change no value; `inplace` must be false. */
const HARMLESS: ReadonlySet<string> = new Set(['_stacklevel', 'copy', 'inplace', 'non_blocking', 'requires_grad']);
/** The first argument goes by several names. */
const isFirst = (name: string): boolean => name === 'input' || name === 'self';

/** What an operation is called with; remembers what it reads, so that nothing given is left out of the result unseen. */
class ReadCall implements Call {
  readonly #read = new Set<string | number>();

  constructor(
    private readonly args: readonly Value[],
    private readonly kwargs: Readonly<Record<string, Value>>,
  ) {}

  get(place: number, name: string): Value | undefined {
    this.#read.add(place).add(name);
    return this.kwargs[name] ?? (place === 0 ? (this.args[0] ?? this.kwargs['self']) : this.args[place]);
  }

  rest(place: number): number[] {
    this.args.forEach((_, index) => (index < place ? undefined : this.#read.add(index)));
    for (const name of SHAPE_NAMES) this.#read.add(name);
    const rest = this.args.slice(place);
    const list = rest.length === 1 && Array.isArray(rest[0]) ? (rest[0] as readonly Value[]) : rest;
    const named = SHAPE_NAMES.map((name) => this.kwargs[name]).find((value) => value !== undefined);
    return (list.length === 0 && Array.isArray(named) ? (named as readonly Value[]) : list).map(toNumber);
  }

  /** @throws ValidationError for an argument that was not read and may change the result. */
  checkAllRead(operation: string): void {
    const refuse = (argument: string) => {
      throw new ValidationError(
        `${operation} does not take ${argument} in a custom loss: write it with other operations`,
      );
    };
    this.args.forEach((value, place) => {
      if (!this.#read.has(place) && !isDefault(value)) refuse(`argument ${place + 1}`);
    });
    for (const [name, value] of Object.entries(this.kwargs)) {
      if (this.#read.has(name) || isFirst(name) || isDefault(value)) continue;
      if (!HARMLESS.has(name) || (name === 'inplace' && value === true)) refuse(name);
    }
  }
}
const SHAPE_NAMES = ['shape', 'size', 'dims', 'dim'] as const;

/** None, and types and devices: all values here are doubles. A type of whole numbers would round. */
const isDefault = (value: Value): boolean => value === null || (isNamed(value) && !isWhole(value));

function finish(output: Value, leaves: readonly Variable[]): ProgramResult {
  const [loss, metrics] = Array.isArray(output) ? (output as readonly Value[]) : [];
  if (loss === undefined || metrics === undefined || !isDictionary(metrics)) {
    throw new ValidationError('a custom loss must return (loss, metrics)');
  }
  const total = toVariable(loss);
  if (total.shape.length > 0) throw new NotScalarError('a custom loss', total.shape);
  backward(total);
  const named = Object.entries(metrics.dict).map(([key, value]) => {
    if (!METRIC.test(key)) throw new ValidationError(`a metric must be called custom/<name>:sum or :mean, not ${key}`);
    if (value instanceof Variable && value.data.length !== 1)
      throw new NotScalarError(`the metric ${key}`, value.shape);
    return [key, toNumber(value)] as const;
  });
  const gradients = leaves.map(({ gradient, data }) => gradient ?? new Float64Array(data.length));
  return {
    loss: total.data[0]!,
    gradient: Float32Array.from(gradients[0]!),
    gradients,
    metrics: Object.fromEntries(named),
  };
}
