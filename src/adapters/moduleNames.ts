import type { ModelFamily } from './modelFamily.js';

/** The last part of a name. */
export const leafOf = (module: string): string => module.slice(module.lastIndexOf('.') + 1);

/** The base model's name of a module of one expert: `mlp.experts.w1` as `mlp.experts.3.gate_proj`. */
export function expertName(module: string, expert: number, { expertNames }: ModelFamily): string {
  const leaf = leafOf(module);
  const stem = module.slice(0, -leaf.length);
  const name = expertNames[leaf] ?? leaf;
  return `${stem.replace(/\.experts\.$/, `.experts.${expert}.`)}${name}`;
}

/** The module that a module is rows of; undefined if it stands for itself. */
export function joinedName(module: string, { joined }: ModelFamily): string | undefined {
  const leaf = leafOf(module);
  const whole = Object.keys(joined).find((name) => joined[name]!.includes(leaf));
  return whole === undefined ? undefined : `${module.slice(0, -leaf.length)}${whole}`;
}
