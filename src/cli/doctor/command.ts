import { Argument, type Command } from 'commander';
import type { Surroundings } from '../context.js';
import { type Add, type CommandOptions } from '../declare.js';

// prettier-ignore
export const DOCTOR = {
  conformance: { flag: '--conformance', help: 'then probe what the service can do: it trains and samples a little, which a hosted service bills' },
  model: { flag: '-m, --model <model>', help: 'with --conformance: base model to probe with (default: the first that can be trained)' },
  profile: { flag: '--profile <file>', help: 'with --conformance: file to write what was found to' },
} as const satisfies CommandOptions;

/** What a command is that needs nothing but its surroundings, and so does not wait for RxJS to load. */
type Small = (surroundings: Surroundings, ...args: never[]) => Promise<void>;

/** `doctor`, and commands about the command itself: `version`, `completion`. */
export function declareDoctor(program: Command, add: Add, surroundings: Surroundings): void {
  add(program, 'doctor', () => import('./doctor.js'), DOCTOR).description(
    'Check key, URL, protocol, versions and latency, and say what is wrong',
  );
  const small =
    (load: () => Promise<{ readonly default: Small }>) =>
    async (...parameters: unknown[]) =>
      (await load()).default(surroundings, ...(parameters.slice(0, -2) as never[]));
  program
    .command('version')
    .description('Show version information')
    .action(small(() => import('./version.js')));
  program
    .command('completion')
    .description('Print a completion script for your shell')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      '\nbash: source <(tinker-rx completion bash)\nzsh:  source <(tinker-rx completion zsh)\nfish: tinker-rx completion fish | source',
    )
    .action(small(() => import('./completion.js')));
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .action(small(() => import('./complete.js')));
}
