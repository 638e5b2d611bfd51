import { UserError } from '../queue/failure.js';
import type { LossResult } from '../engine/types.js';
import type { CustomLossInput, CustomLossNode } from '../../wire/index.js';
import { ndArray, type NdArray } from './ndArray.js';
import { ALIASES } from './aliases.js';
import type { Call, Operation } from './call.js';
import { OPERATIONS } from './operations.js';
import { decodeArgument, isDictionary, toNumber, toVariable, type Value } from './values.js';
import { backward, constant, leaf, type Variable } from './variable.js';

const MODULES = /^(?:torch|operator|math|builtins)(?:\..*)?\.([^.]+)$|^([^.]+)$/;
const METRIC = /^custom\/[a-z0-9_./-]{1,64}:(sum|mean)$/;
const MOST_NODES = 10_000;
const MOST_INPUTS = 16;

/** One input of a loss: float64 values and their shape. */
export type ProgramInput = Pick<NdArray, 'shape' | 'data'>;

/** A traced loss, checked and ready to run. */
export class Program {
  readonly #nodes: readonly CustomLossNode[];
  readonly #operations: readonly (Operation | undefined)[];

  /** @throws UserError naming what this service cannot run. */
  constructor(
    readonly inputs: readonly CustomLossInput[],
    nodes: readonly CustomLossNode[],
  ) {
    if (inputs[0]?.name !== 'logprobs') throw new UserError('the first input of a custom loss must be logprobs');
    if (inputs.length > MOST_INPUTS) throw new UserError(`a custom loss takes at most ${MOST_INPUTS} inputs`);
    if (nodes.length > MOST_NODES) throw new UserError(`a custom loss has at most ${MOST_NODES} nodes`);
    const parameters = nodes.filter(({ op }) => op === 'placeholder').map(({ target }) => target);
    if (parameters.join() !== inputs.map(({ name }) => name).join()) {
      throw new UserError(
        `the graph takes (${parameters.join(', ')}), the inputs say (${inputs.map((i) => i.name).join(', ')})`,
      );
    }
    if (nodes.at(-1)?.op !== 'output') throw new UserError('the graph does not end with its output');
    this.#nodes = nodes;
    this.#operations = nodes.map(operationOf);
    checkReferences(nodes);
  }

  /** The loss of one datum, its derivative by every logprob, and its metrics. */
  run(given: readonly ProgramInput[]): LossResult {
    const values = new Map<string, Value>();
    const [logprobs, ...others] = given.map(({ shape, data }, index) =>
      index === 0 ? leaf(ndArray(shape, data)) : constant(ndArray(shape, data)),
    );
    const inputs: (Variable | undefined)[] = [logprobs, ...others];
    const resolve = (name: string) => values.get(name)!;
    let next = 0;
    for (const [index, { op, name, args = [], kwargs = {} }] of this.#nodes.entries()) {
      if (op === 'placeholder') values.set(name, inputs[next++]!);
      else if (op === 'output') return finish(decodeArgument(args[0], resolve), logprobs!);
      else {
        const call = callOf(
          args.map((argument) => decodeArgument(argument, resolve)),
          Object.fromEntries(Object.entries(kwargs).map(([key, value]) => [key, decodeArgument(value, resolve)])),
        );
        values.set(name, this.#operations[index]!(call));
      }
    }
    throw new UserError('the graph has no output');
  }
}

function operationOf({ op, target }: CustomLossNode): Operation | undefined {
  if (op === 'placeholder' || op === 'output') return undefined;
  const match = MODULES.exec(target);
  const name = match?.[1] ?? match?.[2] ?? target;
  const plain = name.replace(/^_+/, '');
  const operation = OPERATIONS.get(ALIASES.get(plain) ?? plain);
  if (match === null || operation === undefined || (op === 'call_method' && target.includes('.'))) {
    throw new UserError(`this service cannot run ${target} in a custom loss`);
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
        throw new UserError(`node ${name} uses ${reference}, which is not there yet`);
      }
      Object.values(argument).forEach(check);
    };
    check(args);
    check(kwargs);
    if (known.has(name)) throw new UserError(`two nodes are called ${name}`);
    known.add(name);
  }
}

const callOf = (args: readonly Value[], kwargs: Readonly<Record<string, Value>>): Call => ({
  get: (place, name) => kwargs[name] ?? (place === 0 ? (args[0] ?? kwargs['self']) : args[place]),
  rest: (place) => {
    const rest = args.slice(place);
    const list = rest.length === 1 && Array.isArray(rest[0]) ? (rest[0] as readonly Value[]) : rest;
    const named = kwargs['shape'] ?? kwargs['size'] ?? kwargs['dims'] ?? kwargs['dim'];
    return (list.length === 0 && Array.isArray(named) ? (named as readonly Value[]) : list).map(toNumber);
  },
});

function finish(output: Value, logprobs: Variable): LossResult {
  const [loss, metrics] = Array.isArray(output) ? (output as readonly Value[]) : [];
  if (loss === undefined || metrics === undefined || !isDictionary(metrics)) {
    throw new UserError('a custom loss must return (loss, metrics)');
  }
  const total = toVariable(loss);
  if (total.shape.length > 0)
    throw new UserError(`a custom loss must be a scalar, not of shape [${total.shape.join(', ')}]`);
  backward(total);
  const named = Object.entries(metrics.dict).map(([key, value]) => {
    if (!METRIC.test(key)) throw new UserError(`a metric must be called custom/<name>:sum or :mean, not ${key}`);
    return [key, toNumber(value)] as const;
  });
  return {
    loss: total.data[0]!,
    gradient: Float32Array.from(logprobs.gradient ?? new Float64Array(logprobs.data.length)),
    metrics: Object.fromEntries(named),
  };
}
