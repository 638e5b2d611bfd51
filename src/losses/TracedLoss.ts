import type { CustomLossGraph } from '../wire/customLoss.js';
import { Program } from './graph/program.js';
import type { LossExpression } from './trace/record.js';

const BRAND = Symbol.for('tinker-rx/traced-loss');

/** An input of a loss; if the rank is absent, it is that of the data. */
export interface TracedInput {
  /** The tensor's name in `lossFnInputs`. */
  readonly name: string;
  /** Its number of dimensions. Default: that of the data. */
  readonly rank?: 0 | 1 | 2 | undefined;
}

/** What a loss is given to look at: one datum, or a pair of them, the preferred one first. */
export type LossUnit = 'datum' | 'pair';

/** A loss written in TypeScript and recorded as a graph. Made by `defineLoss` and `definePairLoss`. */
export class TracedLoss {
  readonly [BRAND] = true;
  /** For messages, and for the service. */
  readonly name: string;
  /** Whether the loss is computed per datum or per pair. */
  readonly unit: LossUnit;
  /** The logprobs first, then the loss inputs it reads. Those of a pair start with `chosen_` and `rejected_`. */
  readonly inputs: readonly TracedInput[];
  /** What is uploaded if the service runs it. */
  readonly graph: CustomLossGraph;
  /** @internal The graph, ready to be evaluated here. */
  readonly program: Program;
  /** @internal Records the same loss into another graph. */
  readonly record: LossExpression;

  /** Made by `defineLoss` and `definePairLoss`. */
  constructor(fields: Pick<TracedLoss, 'name' | 'unit' | 'inputs' | 'graph' | 'record'>) {
    const { name, unit, inputs, graph, record } = fields;
    this.name = name;
    this.unit = unit;
    this.inputs = inputs;
    this.graph = graph;
    this.record = record;
    this.program = new Program(inputs, graph.nodes, derivedBy(unit));
  }
}

/** Whether a value is a traced loss, also one made by another copy of this package. */
export const isTracedLoss = (value: unknown): value is TracedLoss =>
  typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[BRAND] === true;

const derivedBy = (unit: LossUnit): readonly string[] =>
  unit === 'datum' ? ['logprobs'] : ['chosen_logprobs', 'rejected_logprobs'];
