import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { entryPoints, programOf, publicNames } from './publicNames.js';
import { root } from './snippets.js';

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

describe('public names', () => {
  it('are documented, every one', { timeout: 120_000 }, () => {
    const entries = entryPoints();
    const names = publicNames(programOf(entries), entries);
    expect(names.length).toBeGreaterThan(2500);
    expect(names.filter(({ documented }) => !documented).map(({ at, name }) => `${at} ${name}`)).toStrictEqual([]);
  });

  it('that are not documented are found, with their members', { timeout: 60_000 }, () => {
    const file = `${root}src/sample.ts`;
    const program = programOf([file], (options) => {
      const disk = ts.createCompilerHost(options);
      return {
        ...disk,
        fileExists: (path) => path === file || disk.fileExists(path),
        getSourceFile: (path, version, ...rest) =>
          path === file ? ts.createSourceFile(path, SAMPLE, version, true) : disk.getSourceFile(path, version, ...rest),
      };
    });
    const found = publicNames(program, [file]).filter(({ documented }) => !documented);
    expect(found.map(({ name, at }) => `${name} ${at}`)).toStrictEqual([
      'bare src/sample.ts:10',
      'Options.bare src/sample.ts:6',
      'Options.nested.inside src/sample.ts:8',
      'Event.at src/sample.ts:14',
      'Event.type src/sample.ts:19',
      'Computed.leftSide src/sample.ts:12',
      'Computed.rightSide src/sample.ts:12',
    ]);
  });
});
