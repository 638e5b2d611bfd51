import { Option, type Command } from 'commander';
import { integer, lazily, number, port, several, type Declaration } from '../declare.js';

const MODEL = 'base model, or tinker:// path of a checkpoint';

/** Commands that train and sample. */
export function declareWork(program: Command, declaration: Declaration): void {
  program
    .command('demo')
    .description('Train a small model on this machine and ask it questions: everything in under a minute')
    .option('--steps <n>', 'how many steps to train', integer(1), 60)
    .option('--dashboard [port]', 'keep the dashboard open after the run, until Ctrl-C', port)
    .option('--log <folder>', 'folder for the log of the run (default: a temporary one)')
    .action(lazily(declaration, () => import('../commands/demo.js')));

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
    .action(lazily(declaration, () => import('../commands/local.js')));

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
    .action(lazily(declaration, () => import('../commands/train.js')));

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
    .action(lazily(declaration, () => import('../commands/dpo.js')));

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
    .action(lazily(declaration, () => import('../commands/distill.js')));

  program
    .command('sample')
    .description('Sample for a prompt, a file of prompts, or prompts from standard input; results come as they finish')
    .argument('[prompt...]', 'the prompt; several words are one prompt')
    .requiredOption('-m, --model <model>', MODEL)
    .option(
      '--file <path>',
      'prompts, one per line: text, or JSON (a string, {prompt}, {messages}); or a .json, .csv or .parquet file of such rows',
    )
    .option('--whole', 'treat the file or standard input as a single prompt')
    .option('-n, --num-samples <n>', 'samples per prompt', integer(1), 1)
    .option('--max-tokens <n>', 'maximum tokens per sample', integer(1), 256)
    .option('--temperature <t>', '0 is greedy', number(0), 1)
    .option('--top-p <p>', 'nucleus sampling', number(0), 1)
    .option('--top-k <k>', '-1 for all tokens', integer(-1), -1)
    .option('--seed <n>', 'random seed, if the service supports it', integer(0))
    .option('--stop <text>', "ends a sample (default: the model's own signal; may be repeated)", several)
    .option('--system <text>', 'system message')
    .option('--raw', 'continue the text as it is, without the chat format')
    .option('--renderer <name>', "chat format (default: the model's renderer)")
    .option('--logprobs', 'with --format json: tokens and their log probabilities too')
    .option('--concurrency <n>', 'maximum prompts in flight', integer(1), 200)
    .option('--out <file>', 'append results to this JSONL file instead of printing them')
    .option('--resume', 'with --out: skip prompts that already have a result in the file')
    .option('--skip-bad-rows', 'skip invalid lines instead of failing')
    .action(lazily(declaration, () => import('../commands/sample.js')));

  program
    .command('chat')
    .description('Talk to a base model or a checkpoint')
    .requiredOption('-m, --model <model>', MODEL)
    .option('--system <text>', 'system message')
    .option('--max-tokens <n>', 'maximum tokens per reply', integer(1), 1024)
    .option('--temperature <t>', '0 is greedy', number(0), 0.7)
    .option('--top-p <p>', 'nucleus sampling', number(0), 1)
    .option('--renderer <name>', "chat format (default: the model's renderer)")
    .action(lazily(declaration, () => import('../commands/chat.js')));

  program
    .command('serve')
    .description("Serve a model over HTTP in the shapes of OpenAI's and Anthropic's APIs, until Ctrl-C")
    .requiredOption('-m, --model <model>', MODEL)
    .option('--port <port>', 'port to listen on, 0 for any free one', port, 0)
    .option('--host <address>', 'address to listen on (default: this machine only)')
    .option('--key <key>', 'API key that callers must send (default: a random one)')
    .option('--name <name>', 'name of the model for callers (default: what --model says)')
    .option('--renderer <name>', "chat format (default: the model's renderer)")
    .option('--pieces <tokens>', 'stream in pieces of n tokens (default: when the answer is complete)', integer(1))
    .option('--max-tokens <n>', 'maximum tokens per request', integer(1), 16384)
    .option('--max-requests <n>', 'maximum requests at once; more are refused', integer(1), 256)
    .option('--timeout <seconds>', 'maximum time for an answer; then it is refused', integer(1), 600)
    .option('--allow-host <name>', 'name under which it may be called, also by web pages (may be repeated)', several)
    .option('--keys <file>', 'JSON list of more keys: key, name, maxRequests, models')
    .option('--strict', 'refuse what cannot be honoured instead of warning of it')
    .option('--access-log', 'a line of JSON on standard error for every request')
    .option('--drain <seconds>', 'time for requests to end after Ctrl-C or SIGTERM', integer(0), 30)
    .action(lazily(declaration, () => import('../commands/serve.js')));

  program
    .command('dashboard')
    .description('Show logged runs in the browser, live or afterwards, until Ctrl-C')
    .option('--log <folder>', 'folder of a run, or of several runs (may be repeated)', several)
    .option('--evals <path>', 'result file of eval, or folder of them, to compare (may be repeated)', several)
    .option('--port <port>', 'port to listen on, 0 for any free one', port, 0)
    .option('--host <address>', 'address to listen on (default: this machine only)')
    .action(lazily(declaration, () => import('../commands/dashboard.js')));
}
