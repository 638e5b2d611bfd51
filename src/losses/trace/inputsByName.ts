import type { Entry } from './callerLine.js';
import type { Tensor } from './Tensor.js';
import type { Trace } from './Trace.js';

const INPUT_NAME = /^[a-z_][a-z0-9_]{0,63}$/;
type ByName = Readonly<Record<string, Tensor>>;

/** Inputs as properties, recorded when they are first asked for. Those of one side of a pair have a prefix in the graph. */
export function inputsByName(trace: Trace, derivedBy: readonly string[]): (prefix: string) => ByName {
  const inputs = new Map(derivedBy.map((input) => [input, trace.placeholder(input)]));
  const input = (wanted: string): Tensor => {
    const known = inputs.get(wanted);
    if (known !== undefined) return known;
    if (!INPUT_NAME.test(wanted)) throw trace.error(`the input ${JSON.stringify(wanted)} must be a lower-case name`);
    const made = trace.placeholder(wanted);
    inputs.set(wanted, made);
    return made;
  };
  const refuse = (trap: Entry, why: string): never =>
    trace.enter(trap, () => {
      throw trace.error(why);
    });
  const has = (_: ByName, name: string | symbol): never =>
    refuse(has, `whether data has the input ${String(name)} is not known while a loss is recorded`);
  const ownKeys = (): never =>
    refuse(ownKeys, 'inputs cannot be listed or copied: ask for those you use by name, { logprobs, weights }');
  return (prefix) => {
    const get = (_: ByName, name: string | symbol): Tensor | undefined =>
      typeof name === 'string' ? trace.enter(get, () => input(`${prefix}${name}`)) : undefined;
    return new Proxy({}, { get, has, ownKeys });
  };
}
