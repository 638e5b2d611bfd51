import type { CustomLossNode } from '../../wire/customLoss.js';
import { ValidationError } from '../../wire/tinkerError.js';
import { MOST_NODES } from '../graph/limits.js';
import { callerLine, type Entry, type Line } from './callerLine.js';
import { nodeOf, Tensor } from './Tensor.js';

/** What an operation may be given: a recorded value or a plain number. */
export type Operand = Tensor | number;

/** One recorded node: its name in the graph, and where in the caller's code it was made. */
export interface Recorded {
  readonly trace: Trace;
  readonly name: string;
  readonly what: string;
  readonly line: Line;
}

/** A target as torch.fx writes it: a function, or a method of a tensor. */
export type Target = { readonly function: string } | { readonly method: string };

/** Records the operations of one loss as nodes of a graph, in the order they are called. */
export class Trace {
  readonly nodes: CustomLossNode[] = [];
  readonly #recorded = new Map<string, Recorded>();
  readonly #inputs = new Set<string>();
  readonly #used = new Set<string>();
  #over = false;

  /** `entry` is what the caller called to have a loss recorded. */
  constructor(
    readonly loss: string,
    private entry: Entry,
  ) {}

  /** Runs what the caller's code called; errors and nodes within have the line of that call. */
  enter<A>(entry: Entry, run: () => A): A {
    const outer = this.entry;
    if (this.#inside) return run();
    this.#inside = true;
    this.entry = entry;
    try {
      return run();
    } finally {
      this.#inside = false;
      this.entry = outer;
    }
  }
  #inside = false;

  /** An error of the caller's code, with the line it stands in. */
  error(why: string, { line }: Pick<Recorded, 'line'> = { line: callerLine(this.entry) }): ValidationError {
    const place = line();
    return new ValidationError(`loss ${this.loss}${place === undefined ? '' : ` (${place})`}: ${why}`);
  }

  /** @throws ValidationError for options that an operation does not have. */
  refuseOptions(others: object): void {
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) throw this.error(`there is no option ${unknown}`);
  }

  placeholder(name: string): Tensor {
    this.#inputs.add(name);
    this.nodes.push({ op: 'placeholder', name, target: name, args: [], kwargs: {} });
    return this.#remember(name, `the input ${name}`);
  }

  call(target: Target, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>> = {}): Tensor {
    if (this.#over) throw this.error('the loss is recorded once; its tensors cannot be used afterwards');
    const [op, path] =
      'function' in target ? (['call_function', target.function] as const) : (['call_method', target.method] as const);
    const what = path.slice(path.lastIndexOf('.') + 1);
    const name = `${what}_${this.nodes.length}`;
    if (this.nodes.length >= MOST_NODES)
      throw this.error(`more than ${MOST_NODES} operations: a loop that waits for a value never ends`);
    const encoded = args.map((argument) => this.#encode(argument, what));
    const named = Object.entries(kwargs).map(([key, value]) => [key, this.#encode(value, what)] as const);
    this.nodes.push({ op, name, target: path, args: encoded, kwargs: Object.fromEntries(named) });
    return this.#remember(name, what);
  }

  /** Ends the recording. @throws ValidationError for what was recorded and not used: a branch on it would be lost. */
  output(loss: unknown, metrics: Readonly<Record<string, unknown>>): void {
    const result = this.#encodeResult(loss, 'the loss');
    const named = Object.entries(metrics).map(([key, value]) => [key, this.#encodeResult(value, `the metric ${key}`)]);
    const dict = Object.fromEntries(named) as Record<string, unknown>;
    const isInput = ({ op }: CustomLossNode) => op === 'placeholder';
    // Inputs stand first, also those that were asked for late; one that is not used need not be in the data.
    const inputs = this.nodes.filter((node, index) => isInput(node) && (index === 0 || this.#used.has(node.name)));
    this.nodes.splice(0, Infinity, ...inputs, ...this.nodes.filter((node) => !isInput(node)));
    this.nodes.push({
      op: 'output',
      name: 'output',
      target: 'output',
      args: [{ tuple: [result, { dict }] }],
      kwargs: {},
    });
    this.#over = true;
    for (const recorded of this.#recorded.values()) {
      const { name, what } = recorded;
      if (this.#used.has(name) || this.#inputs.has(name)) continue;
      throw this.error(
        `the result of ${what} is not used. A branch on a value (if, ?:, &&, ||, !) cannot be recorded: use ops.where; otherwise remove it`,
        recorded,
      );
    }
  }

  /** Whether an input has any part in what was recorded. */
  uses(input: string): boolean {
    return this.#used.has(input);
  }

  #remember(name: string, what: string): Tensor {
    const recorded = { trace: this, name, what, line: callerLine(this.entry) };
    this.#recorded.set(name, recorded);
    return new Tensor(recorded);
  }

  #encodeResult(value: unknown, what: string): unknown {
    if (value instanceof Promise) throw this.error(`${what} is a promise: a loss cannot wait for anything`);
    if (!(value instanceof Tensor)) throw this.error(`${what} must be made of the inputs, got ${describe(value)}`);
    return this.#encode(value, what);
  }

  #encode(argument: unknown, what: string): unknown {
    if (argument instanceof Tensor) {
      const { trace, name } = nodeOf(argument);
      if (trace !== this)
        throw this.error(`${what} was given a tensor of another loss (${trace.loss}), which cannot be recorded here`);
      this.#used.add(name);
      return { ref: name };
    }
    if (typeof argument === 'number') {
      if (Number.isFinite(argument)) return argument;
      return { float: Number.isNaN(argument) ? 'nan' : argument > 0 ? 'inf' : '-inf' };
    }
    if (argument === null || typeof argument === 'boolean') return argument;
    if (argument instanceof List) return argument.values.map((value) => this.#encode(value, what));
    if (argument instanceof Index) return argument.encoded;
    throw this.error(
      `${what} was given ${describe(argument)}, which cannot be recorded: give it with the data, as an input of the loss`,
    );
  }
}

/** A list that an operation takes as one argument; arrays from outside are captured data and refused. */
export class List {
  constructor(readonly values: readonly unknown[]) {}
}
/** An index, as the graph writes it. */
export class Index {
  constructor(readonly encoded: unknown) {}
}

function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (ArrayBuffer.isView(value) || Array.isArray(value)) return 'a captured array';
  if (typeof value === 'object' && value !== null && 'dtype' in value) return 'a captured tensor';
  if (typeof value === 'number') return `the number ${value}`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
