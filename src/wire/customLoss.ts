import * as t from 'io-ts';
import { NonNegativeInteger } from './number.js';
import { request, response, withDefault } from './record.js';

export const CustomLossInput = request('CustomLossInput', {
  name: t.string,
  rank: t.union([t.literal(0), t.literal(1), t.literal(2)], '0 | 1 | 2'),
});
export type CustomLossInput = t.TypeOf<typeof CustomLossInput>;

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
  readonly op: 'placeholder' | 'call_function' | 'call_method' | 'output';
  readonly name: string;
  readonly target: string;
  readonly args?: readonly unknown[];
  readonly kwargs?: Readonly<Record<string, unknown>>;
};

/** A loss as data: the nodes that torch.fx records, in order. */
export const CustomLossGraph = request('CustomLossGraph', {
  format: withDefault(t.literal(1), 1),
  nodes: t.array(CustomLossNode),
});
export interface CustomLossGraph {
  readonly format?: 1;
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
