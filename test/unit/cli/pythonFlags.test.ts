/** The commands that the Python SDK has too take the same arguments and flags. The fixture is made by python_flags.py. */
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { buildProgram } from '../../../src/cli/program.js';
import { surroundings } from './terminal.js';

interface PythonCommand {
  readonly arguments: readonly { readonly required: boolean; readonly several: boolean }[];
  readonly options: readonly {
    readonly names: readonly string[];
    readonly flag: boolean;
    readonly several: boolean;
    readonly default: string | number | boolean | null;
  }[];
}
const { commands } = JSON.parse(readFileSync(new URL('fixtures/python-flags.json', import.meta.url), 'utf8')) as {
  readonly commands: Readonly<Record<string, PythonCommand>>;
};

const program = buildProgram({ surroundings: surroundings().surroundings, finish: () => {} });
const find = (path: string): Command | undefined =>
  path === ''
    ? program
    : path
        .split(' ')
        .reduce<Command | undefined>((at, name) => at?.commands.find((child) => child.name() === name), program);

it('knows the commands of the Python command', () => {
  expect(Object.keys(commands).length).toBeGreaterThan(20);
  expect(Object.keys(commands).filter((path) => find(path) === undefined)).toStrictEqual([]);
});

describe.each(Object.entries(commands))('%s', (path, python) => {
  const ours = find(path)!;
  it('takes the same arguments', () => {
    const described = ours.registeredArguments.map(({ required, variadic }) => ({ required, several: variadic }));
    expect(described).toStrictEqual(python.arguments);
  });
  it('takes the same options', () => {
    for (const { names, flag, several, default: value } of python.options) {
      const option = ours.options.find(({ long }) => names.includes(long ?? ''));
      expect(option, names.join(' ')).toBeDefined();
      const short = names.find((name) => !name.startsWith('--'));
      if (short !== undefined) expect(option!.short).toBe(short);
      expect(option!.required).toBe(!flag);
      if (typeof value === 'number') expect(option!.defaultValue).toBe(value);
      if (several) expect(option!.parseArg!('b', option!.parseArg!('a', undefined))).toStrictEqual(['a', 'b']);
    }
  });
});
