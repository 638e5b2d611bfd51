import ts from 'typescript';
import { beforeAll, describe, expect, it } from 'vitest';
import { EXAMPLE_NAMES, examplesOf, SOURCES } from './examples.js';
import { idiomsIn } from './idioms.js';
import { entryPoints, programOf, publicNames } from './publicNames.js';
import { root, type Snippet } from './snippets.js';

const NAMES = `${root}docs/example-names.ts`;

/** An example may show a name without using it, end with an expression, and import types as values. */
const HARMLESS = new Set([6133, 6192, 6196, 6198, 2695]);

/** The program of the given texts over what is on disk, or over what another program has read. */
const programWith = (texts: ReadonlyMap<string, string>, read?: ts.Program): ts.Program =>
  programOf(
    [...texts.keys()],
    (options) => {
      const disk = ts.createCompilerHost(options);
      return {
        ...disk,
        fileExists: (path) => texts.has(path) || disk.fileExists(path),
        readFile: (path) => texts.get(path) ?? disk.readFile(path),
        getSourceFile: (path, version, ...rest) => {
          const text = texts.get(path);
          if (text !== undefined) return ts.createSourceFile(path, text, version, true);
          return read?.getSourceFile(path) ?? disk.getSourceFile(path, version, ...rest);
        },
      };
    },
    { verbatimModuleSyntax: false },
  );

/** What the compiler says of every example, each as `file:line: message`. */
function mistakes(names: ts.Program, wrong: string): { readonly found: readonly string[]; readonly count: number } {
  const checker = names.getTypeChecker();
  const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(names.getSourceFile(NAMES)!)!);
  const known = new Set(exported.map(({ name }) => name));
  const examples: Snippet[] = [
    ...SOURCES.flatMap((file) => examplesOf(file, known)),
    ...examplesOf('src/wrong.ts', known, wrong),
  ];
  const byPath = new Map(examples.map((example, index) => [`${root}docs/example-${index}.ts`, example]));
  const texts = new Map([...byPath].map(([path, { source }]) => [path, `${source}\nexport {};\n`]));
  const program = programWith(texts.set(NAMES, EXAMPLE_NAMES), names);
  const found = [...byPath].flatMap(([path, { file, lines, line }]) => {
    const source = program.getSourceFile(path)!;
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]
      .filter(({ code }) => !HARMLESS.has(code))
      .map(({ start = 0, messageText }) => {
        const at = lines[source.getLineAndCharacterOfPosition(start).line] ?? line;
        return `${file}:${at}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
      });
  });
  return { found, count: examples.length };
}

/** A module with documented and undocumented names, so that the check is known to find some. */
const SAMPLE = `
/** Documented. */
export interface Options {
  /** Documented. */
  readonly size: number;
  readonly bare: string;
  /** Documented. */
  readonly nested: { readonly inside: number };
}
export function bare(): void {}
/** Documented. */
export type Computed = { [K in 'left' | 'right' as \`\${K}Side\`]: number };
/** Documented. */
export type Event = { readonly at: number } & (
  | {
      /** Documented. */
      readonly type: 'a';
    }
  | { readonly type: 'b' }
);
/** Documented. */
export class Base {
  /** Documented. */
  readonly code: string = '';
  /** @internal */
  hidden(): void {}
  protected forSubclasses(): void {}
}
/** Documented. */
export class Derived extends Base {
  override readonly code = 'derived';
}
`;

const WRONG = ['/**', ' * ```ts', " * service.fly('away');", ' * rows.pipe(flap());', ' * ```', ' */'].join('\n');

// One file for both, so that the sources are read once: reading them is most of the time.
describe('doc comments', () => {
  let names: ts.Program;
  beforeAll(() => {
    names = programWith(new Map([[NAMES, EXAMPLE_NAMES]]));
  });

  it('say something about every public name', () => {
    const found = publicNames(names, entryPoints());
    expect(found.length).toBeGreaterThan(2500);
    expect(found.filter(({ text }) => text === '').map(({ at, name }) => `${at} ${name}`)).toStrictEqual([]);
  });

  it('are plain English', () => {
    const found = publicNames(names, entryPoints());
    // Examples and marbles are not prose.
    const prose = (text: string): string => text.replace(/```[\s\S]*?```/g, '').replace(/`[^`\n]*`/g, '');
    expect(found.flatMap(({ at, name, text }) => idiomsIn(`${at} ${name}`, prose(text)))).toStrictEqual([]);
  });

  it('that are missing are found, also those of members', () => {
    const file = `${root}src/sample.ts`;
    const found = publicNames(programWith(new Map([[file, SAMPLE]]), names), [file]);
    expect(found.filter(({ text }) => text === '').map(({ name, at }) => `${name} ${at}`)).toStrictEqual([
      'bare src/sample.ts:10',
      'Options.bare src/sample.ts:6',
      'Options.nested.inside src/sample.ts:8',
      'Event.at src/sample.ts:14',
      'Event.type src/sample.ts:19',
      'Computed.leftSide src/sample.ts:12',
      'Computed.rightSide src/sample.ts:12',
    ]);
  });

  it('have examples that compile; those that do not are named by file and line', () => {
    const { found, count } = mistakes(names, WRONG);
    expect(count).toBeGreaterThan(60);
    expect(found).toStrictEqual([
      "src/wrong.ts:3: Property 'fly' does not exist on type 'ServiceClient'.",
      "src/wrong.ts:4: Cannot find name 'flap'.",
    ]);
  });
});
