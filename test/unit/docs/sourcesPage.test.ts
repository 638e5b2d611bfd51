/** docs/sources-and-sinks.md has a section for every source and sink, with every option of it. */
import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { root } from './snippets.js';

const page = readFileSync(`${root}docs/sources-and-sinks.md`, 'utf8');
const sections = new Map(
  page
    .split(/^### /m)
    .slice(1)
    .map((part) => [part.split('\n', 1)[0]!, part.split(/^## /m)[0]!]),
);
const common = page.split(/^## Options of every source of rows$/m)[1]!.split(/^## /m)[0]!;

interface Exported {
  readonly name: string;
  /** The names of its options, those of a type it extends included. */
  readonly options: readonly string[];
}

// `toConversation` and `toPreference` are part of the sources, and toDatums reads rows with them, too.
const paths = ['sources', 'sinks', 'chat/data'].flatMap((room) =>
  readdirSync(`${root}src/${room}`)
    .filter((name) => name.endsWith('.ts') && name !== 'index.ts')
    .map((name) => `${room}/${name}`),
);
// The client streams replies with it.
const files = [...paths, 'client/sampling/sampleInPieces.ts'].map((path) =>
  ts.createSourceFile(path, readFileSync(`${root}src/${path}`, 'utf8'), ts.ScriptTarget.ES2022, true),
);
const interfaces = new Map(
  files.flatMap((file) => file.statements.filter(ts.isInterfaceDeclaration)).map((found) => [found.name.text, found]),
);

/** The fields of an interface, or of what is left of one. */
function fieldsOf(type: ts.Node | undefined): readonly string[] {
  if (type === undefined || !(ts.isTypeReferenceNode(type) || ts.isExpressionWithTypeArguments(type))) return [];
  const name = ts.isTypeReferenceNode(type) ? type.typeName.getText() : type.expression.getText();
  if (name === 'Omit') {
    const [whole, left] = type.typeArguments!;
    return fieldsOf(whole).filter((field) => !left!.getText().includes(`'${field}'`));
  }
  const found = name.endsWith('Options') ? interfaces.get(name) : undefined;
  if (found === undefined) return [];
  const extended = found.heritageClauses?.flatMap(({ types }) => types.flatMap(fieldsOf)) ?? [];
  return [...found.members.map((member) => member.name!.getText()), ...extended];
}

const exported = files.flatMap((file): Exported[] =>
  file.statements
    .filter(ts.isFunctionDeclaration)
    .filter(({ modifiers = [] }) => modifiers.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword))
    .map(({ name, parameters }) => ({ name: name!.text, options: fieldsOf(parameters.at(-1)?.type) })),
);

describe('docs/sources-and-sinks.md', () => {
  it('has a section for every source and sink, and for nothing else', () => {
    expect(exported.length).toBeGreaterThan(20);
    expect([...sections.keys()].sort()).toStrictEqual([...new Set(exported.map(({ name }) => name))].sort());
  });

  it.each(exported.map(({ name, options }) => [name, options] as const))('%s: shows every option', (name, options) => {
    const section = sections.get(name) ?? '';
    const signature = section.split('\n').find((line) => line.startsWith(`\`${name}`)) ?? '';
    for (const option of options) {
      // The one option of rows that does not concern Parquet.
      if (name === 'fromParquet' && option === 'maxRowBytes') continue;
      expect(signature, `${name} of the page lacks ${option}`).toMatch(
        new RegExp(`\\b${option.replace('$', '\\$')}(?![\\w$])`),
      );
      expect(section + common, `${name} does not explain ${option}`).toMatch(
        new RegExp(`^\\|.*\`${option.replace('$', '\\$')}\`.*\\|`, 'm'),
      );
    }
  });

  it('says that toJsonl appends', () => expect(sections.get('toJsonl')).toContain('**Appends**'));
});
