import { Argument, type Command } from 'commander';
import { lazily, simply, type Declaration } from '../declare.js';

/** `doctor`, and commands about the command itself: `version`, `completion`. */
export function declareDoctor(program: Command, declaration: Declaration): void {
  program
    .command('doctor')
    .description('Check key, URL, protocol, versions and latency, and say what is wrong')
    .option(
      '--conformance',
      'then probe what the service can do: it trains and samples a little, which a hosted service bills',
    )
    .option(
      '-m, --model <model>',
      'with --conformance: base model to probe with (default: the first that can be trained)',
    )
    .option('--profile <file>', 'with --conformance: file to write what was found to')
    .action(lazily(declaration, () => import('./doctor.js')));
  program
    .command('version')
    .description('Show version information')
    .action(simply(declaration, () => import('./version.js')));
  program
    .command('completion')
    .description('Print a completion script for your shell')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      '\nbash: source <(tinker-rx completion bash)\nzsh:  source <(tinker-rx completion zsh)\nfish: tinker-rx completion fish | source',
    )
    .action(simply(declaration, () => import('./completion.js')));
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .action(simply(declaration, () => import('./complete.js')));
}
