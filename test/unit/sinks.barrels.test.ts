import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const folder = (name: string) => new URL(`../../src/${name}/`, import.meta.url);

/** The names a file exports, types included. */
function exportsOf(file: URL): string[] {
  const code = readFileSync(file, 'utf8');
  const declared = [
    ...code.matchAll(/^export (?:abstract )?(?:async )?(?:function\*?|class|const|interface|type) ([\w$]+)/gm),
  ].map(([, name]) => name!);
  const passedOn = [...code.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, names]) =>
    names!
      .split(',')
      .map((name) => name.trim().replace(/^type /, ''))
      .filter((name) => name !== ''),
  );
  return [...new Set([...declared, ...passedOn])];
}

/** Files of types, or of several small things. */
const NOT_OPERATORS = ['backpressure.ts', 'gate.ts', 'schedules.ts', 'step.ts', 'trainingBatch.ts'];

describe.each(['operators', 'sources', 'sinks'])('the barrel of %s', (name) => {
  const files = readdirSync(folder(name)).filter((file) => file.endsWith('.ts') && file !== 'index.ts');

  it('lists every name of every file, and no other', () => {
    const inFiles = files.flatMap((file) => exportsOf(new URL(file, folder(name)))).sort();
    expect(exportsOf(new URL('index.ts', folder(name))).sort()).toStrictEqual(inFiles);
  });

  it('can be imported, and has what it lists', async () => {
    const barrel = (await import(`../../src/${name}/index.ts`)) as Record<string, unknown>;
    const values = files.flatMap((file) =>
      [
        ...readFileSync(new URL(file, folder(name)), 'utf8').matchAll(/^export (?:function|class|const) ([\w$]+)/gm),
      ].map(([, found]) => found!),
    );
    expect(Object.keys(barrel).sort()).toStrictEqual([...new Set(values)].sort());
  });

  it('has an operator, source or sink of its own name in each file that is named like one', () => {
    for (const file of files.filter((each) => /^[a-z]/.test(each) && !NOT_OPERATORS.includes(each))) {
      expect(exportsOf(new URL(file, folder(name)))).toContain(file.replace('.ts', ''));
    }
  });

  it('imports only from where it may', () => {
    const all = readdirSync(folder(name), { recursive: true })
      .map(String)
      .filter((file) => file.endsWith('.ts'));
    for (const file of all) {
      const from = [...readFileSync(new URL(file, folder(name)), 'utf8').matchAll(/from '(\.[^']+)'/g)].map(
        ([, path]) => new URL(path!, new URL(file, folder(name))).pathname.split('/src/')[1]!.split('/')[0]!,
      );
      for (const top of from)
        expect(['wire', 'losses', 'client', 'chat', 'operators', 'sources', 'sinks', name], file).toContain(top);
    }
  });
});

/** Rooms of rooms hold also what only the room itself uses, so the barrel alone says what is public. */
describe.each(['rl', 'evals'])('the barrel of %s', (name) => {
  const barrel = readFileSync(new URL('index.ts', folder(name)), 'utf8');
  const lists = [...barrel.matchAll(/^export (type )?\{([^}]*)\} from '(\.[^']+)\.js'/gm)].map(
    ([, type, names, path]) => ({
      file: new URL(`${path}.ts`, folder(name)),
      names: names!
        .split(',')
        .map((each) => each.trim())
        .filter((each) => each !== ''),
      isTypes: type !== undefined,
    }),
  );

  it('passes on what its files have', () => {
    expect(lists.length).toBeGreaterThan(5);
    for (const { file, names } of lists)
      expect(exportsOf(file), file.pathname).toEqual(
        expect.arrayContaining(names.map((each) => each.replace(/^type /, ''))),
      );
  });

  it('can be imported, and has what it lists', async () => {
    const values = lists.flatMap(({ names, isTypes }) =>
      isTypes ? [] : names.filter((each) => !each.startsWith('type ')),
    );
    const imported = (await import(`../../src/${name}/index.ts`)) as Record<string, unknown>;
    expect(Object.keys(imported).sort()).toStrictEqual([...new Set(values)].sort());
  });
});
