import type { CustomLossGraph } from '../../wire/customLoss.js';
import { NotScalarError, Program } from '../graph/program.js';
import type { Entry } from './callerLine.js';
import { inputsByName } from './inputsByName.js';
import { opsOf, type LossOps } from './ops.js';
import { Tensor } from './Tensor.js';
import { Trace } from './Trace.js';

/** What the function of a loss returns: the loss alone, or with numbers to report. */
export type LossReturn =
  | Tensor
  | {
      /** The loss: a scalar. */
      readonly loss: Tensor;
      /** Reported as `custom/<name>:mean`, averaged over the datums; a name that ends in `:sum` or `:mean` says which. */
      readonly metrics?: Readonly<Record<string, Tensor>>;
    };

/** A loss as a function of its inputs: `inputsOf` gives those whose names start with a prefix, each asked for by the rest of its name. */
export type LossExpression = (
  inputsOf: (prefix: string) => Readonly<Record<string, Tensor>>,
  ops: LossOps,
) => LossReturn;

export interface Recording {
  readonly name: string;
  /** The inputs that depend on the model's weights: one of a datum, two of a pair. */
  readonly derivedBy: readonly string[];
  readonly ranks: (input: string) => 0 | 1 | 2 | undefined;
  readonly expression: LossExpression;
  /** The function of this package that the caller called. */
  readonly entry: Entry;
}

export interface RecordedLoss {
  /** In the order of the graph's placeholders. */
  readonly inputs: readonly string[];
  readonly graph: CustomLossGraph;
}

const METRIC = /^[a-z0-9_./-]{1,64}$/;

/** Runs the function once on values that only remember what is done with them. @throws ValidationError */
export function record({ name, derivedBy, ranks, expression, entry }: Recording): RecordedLoss {
  const trace = new Trace(name, entry);
  const returned: unknown = expression(inputsByName(trace, derivedBy), opsOf(trace));
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
  const inputs = trace.nodes.filter(({ op }) => op === 'placeholder').map(({ target }) => target);
  checkScalars(trace, inputs, derivedBy, ranks);
  return { inputs, graph: { format: 1, nodes: trace.nodes } };
}

function parts(returned: unknown): { readonly loss: unknown; readonly metrics: Readonly<Record<string, unknown>> } {
  const isPlain = typeof returned === 'object' && returned !== null && !(returned instanceof Tensor);
  if (!isPlain || returned instanceof Promise || !('loss' in returned)) return { loss: returned, metrics: {} };
  const { loss, metrics = {} } = returned as { loss: unknown; metrics?: Record<string, unknown> };
  return { loss, metrics };
}

const SHAPES: Readonly<Record<0 | 1 | 2, readonly number[]>> = { 0: [], 1: [3], 2: [3, 2] };

/** Tries the loss on made-up numbers, for targets of both ranks. @throws ValidationError if neither makes one number of it. */
function checkScalars(
  trace: Trace,
  inputs: readonly string[],
  derivedBy: readonly string[],
  ranks: Recording['ranks'],
): void {
  const program = new Program(
    inputs.map((name) => ({ name })),
    trace.nodes,
    derivedBy,
  );
  const failures = ([1, 2] as const).map((rank): unknown => {
    const given = inputs.map((input) => {
      const shape = SHAPES[ranks(input) ?? rank];
      return { shape, data: new Float64Array(shape.reduce((size, extent) => size * extent, 1)).fill(-0.5) };
    });
    try {
      program.run(given);
      return undefined;
    } catch (error) {
      return error;
    }
  });
  const [first] = failures;
  // Any other failure may be one of the made-up numbers.
  if (first instanceof NotScalarError && failures.every((each) => each instanceof NotScalarError))
    throw trace.error(first.message.replace('a custom loss', 'the loss'));
}
