import type { Change } from '../state/changes.js';

type Steps = Extract<Change, { readonly kind: 'steps' }>;

/** The same changes with neighbouring steps of a run as one, so that names of columns are not sent for every row. */
export function packSteps(changes: readonly Change[]): Change[] {
  const packed: Change[] = [];
  let together: Steps[] = [];
  const flush = () => {
    if (together.length > 0) packed.push(together.length === 1 ? together[0]! : joined(together));
    together = [];
  };
  for (const change of changes) {
    if (change.kind !== 'steps') {
      flush();
      packed.push(change);
      continue;
    }
    if (together.length > 0 && together[0]!.run !== change.run) flush();
    together.push(change);
  }
  flush();
  return packed;
}

function joined(changes: readonly Steps[]): Steps {
  const names = new Set(changes.flatMap(({ columns }) => Object.keys(columns)));
  const columns = Object.fromEntries(
    [...names].map((name) => [name, changes.flatMap(({ index, columns }) => columns[name] ?? index.map(() => null))]),
  );
  return { kind: 'steps', run: changes[0]!.run, index: changes.flatMap(({ index }) => index), columns };
}
