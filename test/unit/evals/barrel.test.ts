import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const folder = new URL('../../../src/evals/', import.meta.url);
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.ts') && file !== 'index.ts' && !file.includes('internal'),
);
const textOf = (file: string) => readFileSync(new URL(file, folder), 'utf8');
const declared = (file: string): string[] =>
  [...textOf(file).matchAll(/^export (?:function|class|const|interface|type) ([\w$]+)/gm)].map(([, name]) => name!);

it('lists every name of every file outside of internal, and no other', () => {
  const listed = [...textOf('index.ts').matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, names]) =>
    names!
      .split(',')
      .map((name) => name.trim().replace(/^type /, ''))
      .filter((name) => name !== ''),
  );
  // The signatures of an overloaded function are one name.
  expect(listed.sort()).toStrictEqual([...new Set(files.flatMap(declared))].sort());
});

it('has something of its own name in each file', () => {
  const OF_TYPES = ['record', 'scorer', 'intervals', 'prices'];
  for (const file of files) {
    const name = file.split('/').at(-1)!.replace('.ts', '');
    if (!OF_TYPES.includes(name)) expect(declared(file)).toContain(name);
  }
});
