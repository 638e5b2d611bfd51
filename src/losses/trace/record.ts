import type { CustomLossGraph } from '../../wire/customLoss.js';
import { opsOf, type LossOps } from './ops.js';
import { Tensor } from './Tensor.js';
import { Trace } from './Trace.js';

/** What the function of a loss returns: the loss alone, or with numbers to report. */
export type LossReturn =
  | Tensor
  | {
      readonly loss: Tensor;
      /** Reported as `custom/<name>:mean`, averaged over the datums; a name that ends in `:sum` or `:mean` says which. */
      readonly metrics?: Readonly<Record<string, Tensor>>;
    };

/** A loss as a function of its inputs, each asked for by name. */
export type LossExpression = (input: (name: string) => Tensor, ops: LossOps) => LossReturn;

const INPUT_NAME = /^[a-z_][a-z0-9_]{0,63}$/;
const METRIC = /^[a-z0-9_./-]{1,64}$/;

export interface RecordedLoss {
  /** In the order of the graph's placeholders. */
  readonly inputs: readonly string[];
  readonly graph: CustomLossGraph;
}

/** Runs the function once on values that only remember what is done with them. @throws ValidationError */
export function record(name: string, derivedBy: readonly string[], expression: LossExpression): RecordedLoss {
  const trace = new Trace(name);
  const inputs = new Map(derivedBy.map((input) => [input, trace.placeholder(input)]));
  const input = (wanted: string): Tensor => {
    const known = inputs.get(wanted);
    if (known !== undefined) return known;
    if (!INPUT_NAME.test(wanted)) throw trace.error(`the input ${JSON.stringify(wanted)} must be a lower-case name`);
    const made = trace.placeholder(wanted);
    inputs.set(wanted, made);
    return made;
  };
  const returned: unknown = expression(input, opsOf(trace));
  const { loss, metrics } = parts(returned);
  const named = Object.entries(metrics).map(([key, value]) => {
    const [, base = '', reduction = ':mean'] = /^(.*?)(:sum|:mean)?$/.exec(key) ?? [];
    if (!METRIC.test(base))
      throw trace.error(`the metric ${JSON.stringify(key)} must be 1 to 64 of a-z, 0-9, _ . / -, then :sum or :mean`);
    return [`custom/${base}${reduction}`, value];
  });
  trace.output(loss, Object.fromEntries(named) as Record<string, unknown>);
  if (!derivedBy.some((each) => trace.uses(each)))
    throw trace.error('it does not depend on the logprobs, so nothing could be learned from it');
  const placeholders = trace.nodes.filter(({ op }) => op === 'placeholder');
  return { inputs: placeholders.map(({ target }) => target), graph: { format: 1, nodes: trace.nodes } };
}

function parts(returned: unknown): { readonly loss: unknown; readonly metrics: Readonly<Record<string, unknown>> } {
  const isPlain = typeof returned === 'object' && returned !== null && !(returned instanceof Tensor);
  if (!isPlain || returned instanceof Promise || !('loss' in returned)) return { loss: returned, metrics: {} };
  const { loss, metrics = {} } = returned as { loss: unknown; metrics?: Record<string, unknown> };
  return { loss, metrics };
}
