import type { CustomLossGraph, CustomLossInput } from '../wire/customLoss.js';
import { ValidationError } from '../wire/tinkerError.js';

const MOST_INPUTS = 16;
const INPUT_NAME = /^[a-z_][a-z0-9_]{0,63}$/;
const FUNCTION = /^(torch|math|operator)\.|^getattr$/;
const FORBIDDEN_METHODS = new Set(['item', 'numpy', 'tolist', 'backward']);
const OPS = new Set(['placeholder', 'call_function', 'call_method', 'output']);
const METRIC = /^custom\/[a-z0-9_./-]{1,64}:(sum|mean)$/;

/** Refuses a graph that the service would refuse, with the node's name. @throws ValidationError */
export function checkCustomLoss(name: string, inputs: readonly CustomLossInput[], graph: CustomLossGraph): void {
  const isList = (value: unknown): boolean => Array.isArray(value);
  if (typeof name !== 'string' || !isList(inputs) || !isList((graph as CustomLossGraph | undefined)?.nodes))
    throw new ValidationError('a custom loss needs a name, a list of inputs and a graph with nodes');
  const wrong = (why: string): ValidationError => new ValidationError(`custom loss ${name}: ${why}`);
  if (inputs[0]?.name !== 'logprobs' || inputs[0].rank === 0)
    throw wrong('the first input must be logprobs, of rank 1 or 2');
  if (inputs.length > MOST_INPUTS) throw wrong(`it takes ${inputs.length} inputs, at most ${MOST_INPUTS} are allowed`);
  for (const input of inputs) {
    if (!INPUT_NAME.test(input.name)) throw wrong(`the input ${JSON.stringify(input.name)} must be a lower-case name`);
  }
  const known = new Set<string>();
  for (const { op, name: node, target, args = [], kwargs = {} } of graph.nodes) {
    if (!OPS.has(op)) throw wrong(`node ${node} is a ${op}, which cannot be sent`);
    if (known.has(node)) throw wrong(`two nodes are called ${node}`);
    if (op === 'call_function' && !FUNCTION.test(target))
      throw wrong(`node ${node} calls ${target}; only torch, math and operator may be called`);
    if (op === 'call_method' && FORBIDDEN_METHODS.has(target))
      throw wrong(`node ${node} calls ${target}(), which leaves the graph`);
    for (const reference of references([args, kwargs])) {
      if (!known.has(reference)) throw wrong(`node ${node} refers to ${reference}, which is not before it`);
    }
    known.add(node);
  }
  checkOutput(graph, wrong);
}

function checkOutput({ nodes }: CustomLossGraph, wrong: (why: string) => ValidationError): void {
  const output = nodes.at(-1);
  if (output?.op !== 'output') throw wrong('the last node must be the output');
  const result = output.args?.[0] as { readonly tuple?: readonly unknown[] } | undefined;
  const [loss, metrics] = result?.tuple ?? [];
  if (typeof (loss as { ref?: unknown } | undefined)?.ref !== 'string')
    throw wrong('the output must be (loss, metrics), the loss a tensor');
  const named = (metrics as { dict?: Record<string, unknown> } | undefined)?.dict;
  if (named === undefined) throw wrong('the metrics must be a dict');
  for (const key of Object.keys(named)) {
    if (!METRIC.test(key))
      throw wrong(`the metric ${JSON.stringify(key)} must be named custom/<name>:sum or custom/<name>:mean`);
  }
}

/** Every `{ ref }` in a node's arguments. */
function references(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(references);
  if (typeof value !== 'object' || value === null) return [];
  const { ref } = value as { ref?: unknown };
  return typeof ref === 'string' ? [ref] : Object.values(value).flatMap(references);
}
