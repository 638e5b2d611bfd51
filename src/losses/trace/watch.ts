import type { Entry } from './callerLine.js';
import { nodeOf, type Tensor } from './Tensor.js';

const LOOP = 'a loop over data cannot be recorded: operations apply to all values at once';

const INSTEAD: Readonly<Record<string, string>> = {
  length: `${LOOP}; use count() for their number`,
  map: 'a loop over data (map) cannot be recorded: operations apply to all values at once',
  forEach: 'a loop over data (forEach) cannot be recorded: operations apply to all values at once',
  reduce: 'a loop over data (reduce) cannot be recorded: use sum(), mean(), max() or cumsum()',
  filter: 'a loop over data (filter) cannot be recorded: multiply by a mask, or use ops.where',
  toJSON: 'its values are not known while it is recorded, so it cannot be printed',
  item: 'its values are not known while it is recorded, so none can be taken out',
};

/** What every object has, and would give away silently that this one has no value yet. */
const HIDDEN = new Set<string | symbol>(['valueOf', 'toString', 'toLocaleString']);
/** What is asked of every value, without the caller's doing: by await, and by Object.prototype.toString. */
const HARMLESS = new Set<string | symbol>(['then', Symbol.toStringTag]);

function get(target: Tensor, property: string | symbol): unknown {
  const { trace } = nodeOf(target);
  const value: unknown = HIDDEN.has(property) ? undefined : Reflect.get(target, property, target);
  if (typeof value === 'function' && property !== 'constructor') {
    // Methods have private parts, which a proxy has not: they run on the tensor itself.
    const called = (...given: unknown[]): unknown =>
      trace.enter(called, () => (value as (...args: unknown[]) => unknown).apply(target, given));
    return called;
  }
  if (value !== undefined || HARMLESS.has(property)) return value;
  return refuse(target, insteadOf(property), get);
}
const set = (target: Tensor, property: string | symbol): never =>
  refuse(target, `${String(property)} cannot be set: values are made by operations, and never changed`, set);
const deleteProperty = (target: Tensor): never => refuse(target, 'nothing can be deleted from it', deleteProperty);
const has = (target: Tensor): never => refuse(target, 'what it holds is not known while it is recorded', has);
const ownKeys = (target: Tensor): never => refuse(target, LOOP, ownKeys);

/**
 * Stands around a tensor: what would look at its values, or change them, is an error that says what to call instead.
 *
 * JavaScript asks an object for nothing when it tests whether it is true, or compares it with `===`. So a bare `x ? a : b` (also `!`, `&&`,
 * `||`, `??`) takes the same way as for any other object, and is not noticed if `x` is used elsewhere, too; a comparison that is only
 * tested is (`Trace.output`). Only reading the source could find the rest. A parser did so once: 160 lines and a dependency of every
 * installation, silent about any function that the loss calls. It is not worth that. The way taken does not depend on data, so
 * the recorded loss is what the program says; type checkers refuse `===` with a number, and linters that know types report a
 * condition that is always true.
 */
export const WATCH: ProxyHandler<Tensor> = { get, set, deleteProperty, has, ownKeys };

function refuse(target: Tensor, why: string, trap: Entry): never {
  const { trace, what } = nodeOf(target);
  return trace.enter(trap, () => {
    throw trace.error(`${what}: ${why}`);
  });
}

function insteadOf(property: string | symbol): string {
  if (property === Symbol.toPrimitive || property === 'valueOf' || property === 'toString') {
    return 'arithmetic, comparisons and Math functions on a value cannot be recorded: use add, sub, mul, div, gt, exp, … or ops.where in place of a branch';
  }
  if (property === Symbol.iterator || property === Symbol.asyncIterator) return LOOP;
  if (typeof property === 'symbol') return `${String(property)} cannot be recorded`;
  if (/^\d+$/.test(property)) return `an index in brackets cannot be recorded: use at(${property}) or slice()`;
  return INSTEAD[property] ?? `there is no ${property} in the graph of a loss`;
}
