import { Option, type Command } from 'commander';
import { integer, lazily, number, port, several, type Declaration } from '../declare.js';

const MODEL = 'base model, or tinker:// path of a checkpoint';

/** Commands that train. */
export function declareTraining(program: Command, declaration: Declaration): void {
  program
    .command('train')
    .description('Fine-tune a model on conversations in a JSONL, JSON, CSV or Parquet file')
    .argument('[data]', 'file of conversations; not needed with --resume')
    .option('-m, --model <model>', 'base model to train (required without --from or --resume)')
    .option('--from <path>', 'start from the weights of a tinker:// checkpoint instead of a base model')
    .option('--log <folder>', 'folder for metrics and checkpoints (default: runs/<data>-<time>)')
    .option('--resume <folder>', 'resume the run in this folder (uses its saved options)')
    .option('--rank <n>', 'LoRA rank (default: 32)', integer(1))
    .option('--learning-rate <rate>', 'peak learning rate (default: the one fitted for the model, or 1e-4)', number(0))
    .addOption(
      new Option('--schedule <name>', 'learning rate over the run (default: linear)').choices([
        'constant',
        'linear',
        'cosine',
      ]),
    )
    .option('--warm-up <steps>', 'number of warm-up steps (default: 0)', integer(0))
    .option('--batch-size <n>', 'conversations per step (default: 128)', integer(1))
    .option('--epochs <n>', 'number of passes over the data (default: 1)', integer(1))
    .option('--steps <n>', 'train for exactly n steps, repeating the data if needed', integer(1))
    .option('--max-length <tokens>', 'truncate conversations to this many tokens', integer(2))
    .option('--renderer <name>', "chat format (default: the model's renderer)")
    .addOption(
      new Option('--train-on <what>', 'which tokens are trained (default: last_assistant_turn)').choices([
        'last_assistant_message',
        'last_assistant_turn',
        'all_assistant_messages',
        'all_messages',
        'all_tokens',
        'all_user_and_system_messages',
        'customized',
      ]),
    )
    .option('--seed <n>', 'seed for data order and LoRA initialization (default: 0)', integer(0))
    .option('--checkpoint-every <steps>', 'save a checkpoint every n steps (default: 20) and at the end', integer(1))
    .option('--checkpoint-ttl <seconds>', 'delete checkpoints after this many seconds', integer(3600))
    .option('--ahead <n>', 'steps to submit ahead of results (default: 1)', integer(0))
    .option('--dashboard [port]', 'show the run in the browser while it trains', port)
    .option('--budget-usd <dollars>', 'stop and save once the run has cost this much', number(0))
    .option('--budget-tokens <n>', 'stop and save once the run has used this many tokens', integer(1))
    .option('--prices <file>', 'prices of models (default: the dated list of this release)')
    .option('--dry-run', 'estimate tokens and cost, and send nothing')
    .option('--validation <file>', 'held-out conversations, to show the loss on them beside that of training')
    .option('--validate-every <steps>', 'steps between two validations (default: as for checkpoints)', integer(1))
    .option('--skip-bad-rows', 'skip invalid rows, and those the renderer cannot write, instead of failing')
    .action(lazily(declaration, () => import('./train/train.js')));

  program
    .command('dpo')
    .description('Train a model on preferences in a JSONL, JSON, CSV or Parquet file')
    .argument('[data]', 'file of preferences; not needed with --resume')
    .option('-m, --model <model>', 'base model to train (required without --from or --resume)')
    .option('--from <path>', 'start from the weights of a tinker:// checkpoint instead of a base model')
    .option('--log <folder>', 'folder for metrics and checkpoints (default: runs/<data>-<time>)')
    .option('--resume <folder>', 'resume the run in this folder (uses its saved options and reference)')
    .addOption(new Option('--loss <name>', 'which loss (default: dpo)').choices(['dpo', 'ipo', 'simpo', 'orpo']))
    .option('--beta <beta>', "the loss's beta, or lambda for orpo (default: 0.1, 2 for simpo)", number(0))
    .option('--reference <model>', `what to compare with: ${MODEL} (default: what training starts from)`)
    .option('--rank <n>', 'LoRA rank (default: 32)', integer(1))
    .option('--learning-rate <rate>', 'peak learning rate, falling linearly (default: 1e-5)', number(0))
    .option('--batch-size <n>', 'pairs per step (default: 64)', integer(1))
    .option('--epochs <n>', 'number of passes over the data (default: 1)', integer(1))
    .option('--steps <n>', 'train for exactly n steps, repeating the data if needed', integer(1))
    .option('--max-length <tokens>', 'truncate conversations to this many tokens', integer(2))
    .option('--renderer <name>', "chat format (default: the model's renderer)")
    .option('--seed <n>', 'seed for data order and LoRA initialization (default: 0)', integer(0))
    .option('--checkpoint-every <steps>', 'save a checkpoint every n steps (default: 20) and at the end', integer(1))
    .option('--ahead <n>', 'steps to submit ahead of results (default: 2)', integer(0))
    .option('--dashboard [port]', 'show the run in the browser', port)
    .option('--budget-usd <dollars>', 'stop and save once the run has cost this much', number(0))
    .option('--budget-tokens <n>', 'stop and save once the run has used this many tokens', integer(1))
    .option('--prices <file>', 'prices of models (default: the dated list of this release)')
    .option('--skip-bad-rows', 'skip invalid rows instead of failing')
    .action(lazily(declaration, () => import('./dpo.js')));

  program
    .command('distill')
    .description('Teach a model on its own answers to prompts, graded token by token by a teacher')
    .argument(
      '[prompts]',
      'file of prompts, one per line: text, or JSON (a string, {prompt}, {messages}); not needed with --resume',
    )
    .option('--teacher <model>', `who teaches: ${MODEL} (may be repeated; default: the model as it starts)`, several)
    .option('--teacher-system <text>', 'system message that only the teacher reads')
    .option('-m, --model <model>', 'base model to train (required without --from or --resume)')
    .option('--from <path>', 'start from the weights of a tinker:// checkpoint instead of a base model')
    .option('--log <folder>', 'folder for metrics and checkpoints (default: runs/<prompts>-<time>)')
    .option('--resume <folder>', 'resume the run in this folder (uses its saved options)')
    .option('--coefficient <c>', 'weight of the difference to the teacher (default: 1)', number(0))
    .option('--rank <n>', 'LoRA rank (default: 32)', integer(1))
    .option('--learning-rate <rate>', 'learning rate (default: the one fitted for the model, or 1e-4)', number(0))
    .option('--batch-size <n>', 'prompts per step (default: 64)', integer(1))
    .option('--group <n>', 'answers to each prompt (default: 4)', integer(1))
    .option('--max-tokens <n>', 'maximum tokens per answer (default: 512)', integer(1))
    .option('--epochs <n>', 'number of passes over the prompts (default: 1)', integer(1))
    .option('--steps <n>', 'train for exactly n steps, repeating the prompts if needed', integer(1))
    .option('--renderer <name>', "chat format (default: the model's renderer)")
    .option('--seed <n>', 'seed for samples and LoRA initialization (default: 0)', integer(0))
    .option('--checkpoint-every <steps>', 'save a checkpoint every n steps (default: 20) and at the end', integer(1))
    .option('--dashboard [port]', 'show the run in the browser', port)
    .option('--budget-usd <dollars>', 'stop and save once the run has cost this much', number(0))
    .option('--budget-tokens <n>', 'stop and save once the run has used this many tokens', integer(1))
    .option('--prices <file>', 'prices of models (default: the dated list of this release)')
    .action(lazily(declaration, () => import('./distill.js')));
}
