import { toVariable, type Value } from './values.js';
import type { Variable } from './variable.js';

/** The arguments of a call, by place or by name. */
export interface Call {
  readonly get: (place: number, name: string) => Value | undefined;
  /** All arguments from one place on, as methods like `view(2, 3)` take them; a list given as one counts as they. */
  readonly rest: (place: number) => number[];
}
export type Operation = (call: Call) => Value;

/** An operation on the first argument, which is a tensor or a number. */
export const on =
  (apply: (x: Variable, call: Call) => Value): Operation =>
  (call) =>
    apply(toVariable(call.get(0, 'input')), call);
