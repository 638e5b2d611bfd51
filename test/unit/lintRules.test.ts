import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** What `npm run lint` must find: for every rule of .oxlintrc.json, code that breaks it. */
const PLANTED: Readonly<Record<string, string>> = {
  'no-var': 'export const f = (): number => { var a = 1; return a; };',
  'prefer-const': 'export const f = (): number => { let a = 1; return a; };',
  'prefer-rest-params': 'export function f(): unknown { return arguments; }',
  'prefer-spread': 'export const f = (a: number[]): number => Math.max.apply(Math, a);',
  eqeqeq: 'export const f = (a: number, b: number): boolean => a == b;',
  'no-restricted-imports': "import { a } from 'rxjs/internal/a';\nexport const b: unknown = a;",
  'no-unused-vars': 'const unused = 1;\nexport {};',
  'no-unused-expressions': 'export const f = (a: number): void => { a + 1; };',
  'no-array-constructor': 'export const a: number[] = new Array(1, 2);',
  'typescript/await-thenable': 'export const f = async (): Promise<number> => await 1;',
  'typescript/ban-ts-comment': '// @ts-ignore\nexport const a: number = 1;',
  'typescript/consistent-type-imports': "import { T } from './types.js';\nexport const a: T = 1;",
  'typescript/explicit-module-boundary-types': 'export function f(a: number) { return a; }',
  'typescript/no-array-delete': 'export const f = (a: number[]): void => { delete a[0]; };',
  'typescript/no-base-to-string': 'export const f = (a: { b: number }): string => String(a);',
  'typescript/no-duplicate-enum-values': 'export enum E { A = 1, B = 1 }',
  'typescript/no-duplicate-type-constituents': 'export type T = 1 | 2 | 1;',
  'typescript/no-empty-object-type': 'export const a: {} = 1;',
  'typescript/no-explicit-any': 'export const f = (a: any): void => void a;',
  'typescript/no-extra-non-null-assertion': 'export const f = (a: number | null): number => a!!;',
  'typescript/no-floating-promises': 'export const f = (): void => { Promise.resolve(1); };',
  'typescript/no-for-in-array': 'export const f = (a: number[]): void => { for (const i in a) void i; };',
  'typescript/no-implied-eval': "setTimeout('1');\nexport {};",
  'typescript/no-misused-new': 'export interface I { new (): I; }',
  'typescript/no-misused-promises': 'export const f = (): void => { [1].forEach(async () => {}); };',
  'typescript/no-namespace': 'export namespace N { export const a = 1; }',
  'typescript/no-non-null-asserted-optional-chain': 'export const f = (a?: { b?: number }): number => a?.b!;',
  'typescript/no-redundant-type-constituents': 'export type T = unknown | string;',
  'typescript/no-require-imports': "import a = require('a');\nexport const b: unknown = a;",
  'typescript/no-this-alias': 'export class C { a(): this { const self = this; return self; } }',
  'typescript/no-unnecessary-type-assertion': 'const a = 1 as number;\nexport const b = a as number;',
  'typescript/no-unnecessary-type-constraint': 'export type T<A extends unknown> = A[];',
  'typescript/no-unsafe-argument': 'declare const a: never[] & any;\nexport const b = Math.abs(a);',
  'typescript/no-unsafe-assignment': "export const a = JSON.parse('1');",
  'typescript/no-unsafe-call': "JSON.parse('1')();\nexport {};",
  'typescript/no-unsafe-declaration-merging': 'export interface C { a: number }\nexport class C {}',
  'typescript/no-unsafe-enum-comparison': 'enum E { A }\nexport const f = (a: E): boolean => a === 0;',
  'typescript/no-unsafe-function-type': 'export const f = (a: Function): void => void a;',
  'typescript/no-unsafe-member-access': "JSON.parse('1').a;\nexport {};",
  'typescript/no-unsafe-return': "export const f = (): unknown[] => { return JSON.parse('1'); };",
  'typescript/no-unsafe-unary-minus': 'export const f = (a: string): number => -a;',
  'typescript/no-wrapper-object-types': 'export const f = (a: String): void => void a;',
  'typescript/only-throw-error': "export const f = (): void => { throw 'text'; };",
  'typescript/prefer-as-const': "export const a = 'b' as 'b';",
  'typescript/prefer-namespace-keyword': 'export module M { export const a = 1; }',
  'typescript/prefer-promise-reject-errors': "export const f = (): Promise<never> => Promise.reject('text');",
  'typescript/restrict-plus-operands': 'export const f = (a: string, b: { c: number }): string => a + b;',
  'typescript/restrict-template-expressions': 'export const f = (a: { b: number }): string => `${a}`;',
  'typescript/triple-slash-reference': '/// <reference path="./types.ts" />\nexport {};',
  'typescript/unbound-method': 'class C { a(): void {} }\nexport const f = new C().a;',
};

const root = fileURLToPath(new URL('../..', import.meta.url));
const CONFIG = join(root, '.oxlintrc.json');

interface Rules {
  readonly rules: Readonly<Record<string, unknown>>;
}
const config = JSON.parse(readFileSync(CONFIG, 'utf8')) as Rules & { readonly overrides: readonly Rules[] };
const configured = [config, ...config.overrides].flatMap(({ rules }) =>
  Object.entries(rules).flatMap(([name, level]) => (level === 'off' ? [] : [name])),
);
const fileOf = (rule: string): string => `src/${rule.replace('/', '.')}.ts`;

describe('npm run lint', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tinker-rx-lint-'));
  let found: readonly { readonly code: string; readonly filename: string }[] = [];

  beforeAll(async () => {
    mkdirSync(join(folder, 'src'));
    const compilerOptions = {
      strict: true,
      target: 'ES2022',
      module: 'ESNext',
      moduleResolution: 'Bundler',
      types: [],
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }));
    writeFileSync(join(folder, 'src/types.ts'), 'export type T = number;\n');
    for (const [rule, source] of Object.entries(PLANTED)) writeFileSync(join(folder, fileOf(rule)), `${source}\n`);
    const printed = await new Promise<string>((resolve) => {
      const args = [join(root, 'node_modules/oxlint/bin/oxlint'), '-c', CONFIG, '-f', 'json'];
      // oxlint looks for its type checker on the path, where `npm run` puts it and a bare `vitest` does not.
      const env = { ...process.env, PATH: `${join(root, 'node_modules/.bin')}${delimiter}${process.env['PATH']}` };
      execFile(process.execPath, args, { cwd: folder, env, maxBuffer: 2 ** 26 }, (_error, stdout) => resolve(stdout));
    });
    found = (JSON.parse(printed) as { readonly diagnostics: typeof found }).diagnostics;
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('has code here that breaks each of its rules', () => {
    expect(Object.keys(PLANTED).sort()).toEqual([...new Set(configured)].sort());
  });

  it.each(Object.keys(PLANTED))('finds what breaks %s', (rule) => {
    const names = found.filter(({ filename }) => filename === fileOf(rule)).map(({ code }) => code);
    const [plugin, name] = rule.includes('/') ? rule.split('/') : ['eslint', rule];
    expect(names).toContain(`${plugin}(${name})`);
  });

  it('finds nothing in what breaks none', () => {
    expect(found.filter(({ filename }) => filename === 'src/types.ts')).toEqual([]);
  });
});
