/** An option in which runs differ, with its value in each run; undefined if a run has none. */
export interface Difference {
  readonly name: string;
  readonly values: readonly (string | undefined)[];
}

/** The options in which runs differ. Options of options are named by their path; runs whose options are unknown do not count. */
export function differences(configs: readonly unknown[]): Difference[] {
  const known = configs.map((config) => new Map(leaves(config, '')));
  const compared = known.filter(({ size }) => size > 0);
  const names = new Set(compared.flatMap((options) => [...options.keys()]));
  return [...names]
    .filter((name) => new Set(compared.map((options) => options.get(name))).size > 1)
    .map((name) => ({ name, values: known.map((options) => options.get(name)) }));
}

/** Every value inside of a value, with its path: a list is one value. */
function leaves(value: unknown, path: string): [path: string, text: string][] {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return Object.entries(value).flatMap(([name, inner]) => leaves(inner, path === '' ? name : `${path}.${name}`));
  }
  if (path === '' || value === undefined) return [];
  return [[path, typeof value === 'string' ? value : JSON.stringify(value)]];
}
