import type { Command, Option } from 'commander';
import type { Surroundings } from '../context.js';
import { buildProgram } from '../program.js';

/** Prints the completions of the last word, one per line. Prints nothing if a file or a value is expected. */
export default async function complete(surroundings: Surroundings, words: readonly string[]): Promise<void> {
  const candidates = candidatesFor(buildProgram({ surroundings, finish: () => {} }), words);
  surroundings.stdout.write(candidates.map((word) => `${word}\n`).join(''));
}

/** The completions of the last of `words`. */
export function candidatesFor(program: Command, words: readonly string[]): readonly string[] {
  const { before, current } = withoutEquals(words);
  const { command, values } = follow(program, before);
  const options = optionsOf(program, command);
  const named = options.find(({ short, long }) => before.length > 0 && [short, long].includes(before.at(-1)));
  // `--format=js`, as zsh and fish give it, in one word.
  const [, name, begun] = /^(--[\w-]+)=(.*)$/s.exec(current) ?? [];
  if (name !== undefined) {
    const choices = options.find(({ long }) => long === name)?.argChoices ?? [];
    return choices.filter((choice) => choice.startsWith(begun!)).map((choice) => `${name}=${choice}`);
  }
  const all =
    named !== undefined && (named.required || (named.optional && !current.startsWith('-')))
      ? (named.argChoices ?? [])
      : current.startsWith('-')
        ? [...options.flatMap(({ long }) => (long == null ? [] : [long])), '--help']
        : command.commands.length > 0
          ? command.commands.map((child) => child.name()).filter((each) => !each.startsWith('__'))
          : (command.registeredArguments[values]?.argChoices ?? []);
  return all.filter((word) => word.startsWith(current)).sort();
}

/** bash makes three words of `--format=js`; they mean what `--format js` means. */
function withoutEquals(words: readonly string[]): { readonly before: readonly string[]; readonly current: string } {
  const current = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  if (current === '=') return { before, current: '' };
  return before.at(-1) === '=' ? { before: before.slice(0, -1), current } : { before, current };
}

/** The command that the words select, and how many of its arguments they contain. */
function follow(program: Command, words: readonly string[]): { readonly command: Command; readonly values: number } {
  let command = program;
  let values = 0;
  let isValue = false;
  for (const word of words) {
    if (isValue || word.startsWith('-')) {
      const option = optionsOf(program, command).find(({ short, long }) => [short, long].includes(word));
      isValue = !isValue && option?.required === true;
      continue;
    }
    const child = command.commands.find((each) => each.name() === word);
    if (child === undefined) values++;
    else command = child;
  }
  return { command, values };
}

const optionsOf = (program: Command, command: Command): readonly Option[] =>
  command === program ? command.options : [...command.options, ...program.options];
