import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';

const folder = (name: string) => new URL(`../../src/${name}/`, import.meta.url);

/** The text of a file without what it exports for this library only. */
const publicText = (file: URL): string => readFileSync(file, 'utf8').replace(/^\/\*\* @internal .*\nexport /gm, '');

/** The names a file exports, types included. */
function exportsOf(file: URL): string[] {
  const code = publicText(file);
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

/** The names that a barrel passes on from another room. */
const passedOn = (barrel: URL): string[] =>
  [...readFileSync(barrel, 'utf8').matchAll(/^export (?:type )?\{([^}]*)\} from '\.\.\/[^']+'/gm)].flatMap(
    ([, names]) =>
      names!
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== ''),
  );

/** Files of types, or of several small things. */
const NOT_OPERATORS = ['TokenBucket', 'backpressure', 'flow', 'gate', 'schedules', 'step', 'trainingBatch'];

/** Folders whose files serve several rooms and are not public. */
const NOT_PUBLIC = /(^|[/\\])(shared|internal)[/\\]/;

/** The public files of a room, by their path in it: of operators, one folder for each kind. */
const publicFiles = (room: string): string[] =>
  readdirSync(folder(room), { recursive: room === 'operators', encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && file !== 'index.ts' && !NOT_PUBLIC.test(file))
    .map((file) => file.replaceAll('\\', '/'));

describe.each(['operators', 'sources', 'sinks'])('the barrel of %s', (name) => {
  const files = publicFiles(name);

  it('lists every name of every file, and no other', () => {
    const index = new URL('index.ts', folder(name));
    const inFiles = files.flatMap((file) => exportsOf(new URL(file, folder(name))));
    const elsewhere = passedOn(index).map((each) => each.replace(/^type /, ''));
    expect(exportsOf(index).sort()).toStrictEqual([...inFiles, ...elsewhere].sort());
  });

  it('can be imported, and has what it lists', async () => {
    const barrel = (await import(`../../src/${name}/index.ts`)) as Record<string, unknown>;
    const values = files.flatMap((file) =>
      [...publicText(new URL(file, folder(name))).matchAll(/^export (?:function|class|const) ([\w$]+)/gm)].map(
        ([, found]) => found!,
      ),
    );
    const elsewhere = passedOn(new URL('index.ts', folder(name))).filter((each) => !each.startsWith('type '));
    expect(Object.keys(barrel).sort()).toStrictEqual([...new Set([...values, ...elsewhere])].sort());
  });

  it('has an operator, source or sink of its own name in each file that is named like one', () => {
    for (const file of files) {
      const operator = basename(file, '.ts');
      if (!/^[a-z]/.test(operator) || NOT_OPERATORS.includes(operator)) continue;
      expect(exportsOf(new URL(file, folder(name)))).toContain(operator);
    }
  });
});
