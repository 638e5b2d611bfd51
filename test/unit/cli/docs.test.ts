/** docs/cli.md tells of every command and every flag what the program itself tells, and shows what tests saw printed. */
import { readFileSync } from 'node:fs';
import type { Command, Option } from 'commander';
import { describe, expect, it } from 'vitest';
import { buildProgram } from '../../../src/cli/program.js';
import { surroundings } from './terminal.js';

const root = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const text = root('docs/cli.md');
const program = buildProgram({ surroundings: surroundings().surroundings, finish: () => {} });

/** Every command that does something, by the words that lead to it. */
function leaves(command: Command, path: readonly string[] = []): [string, Command][] {
  return command.commands
    .filter((child) => !child.name().startsWith('__'))
    .flatMap((child): [string, Command][] => {
      const words = [...path, child.name()];
      // A command that takes arguments does something itself, also where it has others below it.
      const acts = child.commands.length === 0 || child.registeredArguments.length > 0;
      return [...(acts ? [[words.join(' '), child] as [string, Command]] : []), ...leaves(child, words)];
    });
}
const commands = leaves(program);

/** The parts of the page, by the command of their heading. */
const sections = new Map(
  text
    .split(/^(?=### `)/m)
    .slice(1)
    .map((part) => [/^### `(.+)`$/m.exec(part)![1]!, part.split(/^## /m)[0]!]),
);

/** A flag as it stands in a table of the page. */
function rowOf({ flags, description, defaultValue, argChoices, negate }: Option): string {
  const told = [
    ...(argChoices === undefined ? [] : [`one of ${argChoices.join(', ')}`]),
    ...(defaultValue === undefined || negate ? [] : [`default: ${String(defaultValue)}`]),
  ];
  return `| \`${flags}\` | ${description}${told.length === 0 ? '' : ` (${told.join('; ')})`} |`;
}
const rowsOf = (part: string) => part.split('\n').filter((line) => /^\| `-/.test(line));

it('has a heading for every command, and no other', () => {
  expect(commands.length).toBeGreaterThan(25);
  expect([...sections.keys()]).toStrictEqual(commands.map(([path]) => path));
});

describe.each(commands)('%s', (path, command) => {
  const section = sections.get(path) ?? '';
  it('is described as the program describes it', () => {
    expect(section).toContain(`\n${command.description()}.\n`);
    const given = command.registeredArguments.map((argument) => {
      const shown = `${argument.name()}${argument.variadic ? '...' : ''}`;
      return ` ${argument.required ? `<${shown}>` : `[${shown}]`}`;
    });
    if (given.length > 0) expect(section).toContain(`\`tinker-rx ${path}${given.join('')}\``);
  });
  it('lists its flags', () => expect(rowsOf(section)).toStrictEqual(command.options.map(rowOf)));
});

it('lists the flags of every command, and the exit codes', () => {
  const before = text.split(/^### `/m)[0]!;
  expect(rowsOf(before)).toStrictEqual(program.options.map(rowOf));
  for (const code of ['0', '1', '2', '130', '129, 143']) expect(before).toContain(`\n| ${code} | `);
});

const shown = [...text.matchAll(/^<!-- golden: ([\w-]+) -->\n\n?```\w*\n\$ (.+)\n([^]*?)^```$/gm)];
it('shows output', () => expect(shown.length).toBeGreaterThanOrEqual(8));
it.each(shown.map(([, name, command, output]) => [command!, name!, output!]))(
  'shows what %s prints',
  (_, name, output) => {
    expect(output).toBe(root(`test/loopback/golden/cli/${name}.txt`));
  },
);
