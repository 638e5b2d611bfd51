import * as t from 'io-ts';
import { NonNegativeInteger } from './number.js';
import { request, response, withDefault } from './record.js';

export const CustomLossInput = request('CustomLossInput', {
  name: t.string,
  rank: t.union([t.literal(0), t.literal(1), t.literal(2)], '0 | 1 | 2'),
});
/** One tensor that a custom loss reads. */
export interface CustomLossInput {
  /** Its name in `lossFnInputs`; `logprobs` are the model's. */
  readonly name: string;
  /** Its number of dimensions. */
  readonly rank: 0 | 1 | 2;
}

/** One operation of a loss graph, as torch.fx records it. */
export const CustomLossNode = request('CustomLossNode', {
  op: t.keyof(
    { placeholder: null, call_function: null, call_method: null, output: null },
    'placeholder | call_function | call_method | output',
  ),
  name: t.string,
  target: t.string,
  args: withDefault(t.array(t.unknown), []),
  kwargs: withDefault(t.UnknownRecord, {}),
});
export type CustomLossNode = {
  /** What the node does: an input, a function call, a method call, or the result. */
  readonly op: 'placeholder' | 'call_function' | 'call_method' | 'output';
  /** Its name, unique in the graph; later nodes refer to it. */
  readonly name: string;
  /** The input's, function's or method's name, such as `torch.exp`. */
  readonly target: string;
  /** Positional arguments: numbers, lists, or references to earlier nodes. Default none. */
  readonly args?: readonly unknown[];
  /** Arguments by name. Default none. */
  readonly kwargs?: Readonly<Record<string, unknown>>;
};

/** A loss as data: the nodes that torch.fx records, in order. */
export const CustomLossGraph = request('CustomLossGraph', {
  format: withDefault(t.literal(1), 1),
  nodes: t.array(CustomLossNode),
});
export interface CustomLossGraph {
  /** Version of the format. Default 1, the only one so far. */
  readonly format?: 1;
  /** The operations, each after those it refers to. */
  readonly nodes: readonly CustomLossNode[];
}

export const CreateCustomLossRequest = request('CreateCustomLossRequest', {
  session_id: t.string,
  custom_loss_seq_id: NonNegativeInteger,
  name: t.string,
  inputs: t.array(CustomLossInput),
  graph: CustomLossGraph,
  type: withDefault(t.literal('create_custom_loss'), 'create_custom_loss'),
});
export const CreateCustomLossResponse = response('CreateCustomLossResponse', { loss_id: t.string });
