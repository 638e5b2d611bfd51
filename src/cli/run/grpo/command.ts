import { Option, type Command } from 'commander';
import { integer, lazily, number, port, type Declaration } from '../../declare.js';

/** `grpo`. */
export function declareReinforcement(program: Command, declaration: Declaration): void {
  program
    .command('grpo')
    .description('Train a model by reinforcement: a file of tasks, and a module that grades the answers')
    .argument('[tasks]', 'file of tasks: JSONL, CSV or Parquet; not needed with --resume')
    .option('--reward <module>', 'exports (answer, task) => number as its default; may export prompt(task)')
    .option('-m, --model <model>', 'base model to train (required without --from or --resume)')
    .option('--from <path>', 'start from the weights of a tinker:// checkpoint instead of a base model')
    .option(
      '--calibrate [groups]',
      'sample a few groups, train nothing, and report rewards, lengths and tokens',
      integer(1),
    )
    .option('--group <n>', 'answers per task (default: 16)', integer(2))
    .option('--groups-per-batch <n>', 'tasks per step (default: 32)', integer(1))
    .option('--max-steps-off-policy <n>', 'how far sampling may run ahead of training (default: 0)', integer(0))
    .option(
      '--minibatches <n>',
      'parts of a batch that are trained on while the rest is sampled (default: 1)',
      integer(1),
    )
    .addOption(
      new Option('--loss <name>', 'loss of the service (default: importance_sampling)').choices([
        'importance_sampling',
        'ppo',
        'cispo',
        'dro',
        'gspo',
      ]),
    )
    .option('--kl-penalty <c>', 'penalty for leaving the base model (default: none)', number(0))
    .option(
      '--learning-rate <rate>',
      'constant learning rate (default: a tenth of the one fitted for the model)',
      number(0),
    )
    .option('--rank <n>', 'LoRA rank (default: 32)', integer(1))
    .option('--max-tokens <n>', 'maximum tokens per answer (default: 512)', integer(1))
    .option('--temperature <t>', 'other than 1 changes the distribution that is trained on (default: 1)', number(0))
    .option('--epochs <n>', 'number of passes over the tasks (default: 1)', integer(1))
    .option('--steps <n>', 'train for exactly n steps, repeating the tasks if needed', integer(1))
    .option('--renderer <name>', "chat format (default: the model's renderer)")
    .option('--seed <n>', 'seed for samples and LoRA initialization (default: 0)', integer(0))
    .option('--checkpoint-every <steps>', 'save a checkpoint every n steps (default: 20) and at the end', integer(1))
    .option('--log <folder>', 'folder for metrics, rollouts and checkpoints (default: runs/<tasks>-<time>)')
    .option('--resume <folder>', 'resume the run in this folder (uses its saved options)')
    .option('--dashboard [port]', 'show the run in the browser while it runs', port)
    .option('--budget-usd <dollars>', 'stop and save once the run has cost this much', number(0))
    .option('--budget-tokens <n>', 'stop and save once the run has used this many tokens', integer(1))
    .option('--prices <file>', 'prices of models (default: the dated list of this release)')
    .action(lazily(declaration, () => import('./grpo.js')));
}
