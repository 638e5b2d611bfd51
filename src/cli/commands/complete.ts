import type { Command } from 'commander';
import type { Surroundings } from '../context.js';
import { buildProgram } from '../program.js';

/** Prints the words that may stand in place of the last one, one a line; nothing where a file or a value is due. */
export default async function complete(surroundings: Surroundings, words: readonly string[]): Promise<void> {
  const candidates = candidatesFor(buildProgram({ surroundings, finish: () => {} }), words);
  surroundings.stdout.write(candidates.map((word) => `${word}\n`).join(''));
}

/** The words that may stand in place of the last of `words`. */
export function candidatesFor(program: Command, words: readonly string[]): readonly string[] {
  const current = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  let command = program;
  for (const word of before) command = command.commands.find((child) => child.name() === word) ?? command;
  const options = command === program ? command.options : [...command.options, ...program.options];
  const named = options.find(({ short, long }) => before.length > 0 && [short, long].includes(before.at(-1)));
  const all =
    named !== undefined && (named.required || named.optional)
      ? (named.argChoices ?? [])
      : current.startsWith('-')
        ? [...options.flatMap(({ long }) => (long == null ? [] : [long])), '--help']
        : command.commands.length > 0
          ? command.commands.map((child) => child.name()).filter((name) => !name.startsWith('__'))
          : (command.registeredArguments[0]?.argChoices ?? []);
  return all.filter((word) => word.startsWith(current)).sort();
}
