import { Option, type Command } from 'commander';
import { integer, lazily, number, port, type Declaration } from '../declare.js';

/** `demo` and `local`. */
export function declareLocal(program: Command, declaration: Declaration): void {
  program
    .command('demo')
    .description('Train a small model on this machine and ask it questions: everything in under a minute')
    .option('--steps <n>', 'how many steps to train', integer(1), 60)
    .option('--dashboard [port]', 'keep the dashboard open after the run, until Ctrl-C', port)
    .option('--log <folder>', 'folder for the log of the run (default: a temporary one)')
    .action(lazily(declaration, () => import('./demo.js')));

  program
    .command('local')
    .description('Run the embedded Tinker service on this machine until Ctrl-C')
    .option('--port <port>', 'port to listen on, 0 for any free one', port, 0)
    .option('--data <folder>', 'where to keep checkpoints and records (default: a temporary folder)')
    .option('--key <key>', 'API key that callers must send, tml-… (default: a random one)')
    .option('--clock <ms>', 'length of a lock-step cycle, 0 for none', number(0), 0)
    .addOption(
      new Option('--dialect <dialect>', 'which server to behave like').choices(['tinker', 'skyrl']).default('tinker'),
    )
    .addOption(
      new Option('--logprobs <kind>', 'logprobs of sampled tokens: as the model has them, or scaled by the temperature')
        .choices(['raw', 'scaled'])
        .default('raw'),
    )
    .option('--strict', 'refuse samples that cannot fit the context, and loss inputs that the loss does not read')
    .action(lazily(declaration, () => import('./local.js')));
}
