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
    .option('--key <key>', 'API key to ask for, tml-… (default: a random one)')
    .option('--clock <ms>', 'length of a lock-step cycle, 0 for none', number(0), 0)
    .addOption(
      new Option('--dialect <dialect>', 'which server to behave like').choices(['tinker', 'skyrl']).default('tinker'),
    )
    .action(lazily(declaration, () => import('../commands/local.js')));

  program
    .command('train')
    .description('Fine-tune a model on conversations in a JSONL, JSON, CSV or Parquet file')
    .argument('[data]', 'file of conversations; not needed with --resume')
    .option('-m, --model <model>', 'base model to train')
    .option('--from <path>', 'start from the weights of a tinker:// checkpoint instead of a base model')
    .option('--log <folder>', 'folder for metrics and checkpoints (default: runs/<data>-<time>)')
    .option('--resume <folder>', 'go on with the run logged in this folder, with its options')
    .option('--rank <n>', 'LoRA rank (default: 32)', integer(1))
    .option('--learning-rate <rate>', 'peak learning rate (default: the one fitted for the model, or 1e-4)', number(0))
    .addOption(
      new Option('--schedule <name>', 'learning rate over the run (default: linear)').choices([
        'constant',
        'linear',
        'cosine',
      ]),
    )
    .option('--warm-up <steps>', 'steps the learning rate takes to rise (default: 0)', integer(0))
    .option('--batch-size <n>', 'conversations in a step (default: 128)', integer(1))
    .option('--epochs <n>', 'how often to go through the data (default: 1)', integer(1))
    .option('--steps <n>', 'stop after so many steps, going through the data as often as needed', integer(1))
    .option('--max-length <tokens>', 'cut longer conversations', integer(2))
    .option('--renderer <name>', "how conversations are written (default: the model's)")
    .addOption(
      new Option('--train-on <what>', 'which tokens carry loss (default: last_assistant_turn)').choices([
        'last_assistant_message',
        'last_assistant_turn',
        'all_assistant_messages',
        'all_messages',
        'all_tokens',
        'all_user_and_system_messages',
        'customized',
      ]),
    )
    .option('--seed <n>', 'for the order of the data and the first weights (default: 0)', integer(0))
    .option('--checkpoint-every <steps>', 'save so often (default: 20); always at the end', integer(1))
    .option('--checkpoint-ttl <seconds>', 'let the service drop checkpoints after this long', integer(3600))
    .option('--ahead <n>', 'steps to submit ahead of results (default: 1)', integer(0))
    .option('--dashboard [port]', 'show the run in the browser while it goes on', port)
    .option('--validation <file>', 'held-out conversations, to show the loss on them beside that of training')
    .option('--validate-every <steps>', 'steps between two validations (default: as for checkpoints)', integer(1))
    .option('--skip-bad-rows', 'skip invalid rows, and those the renderer cannot write, instead of failing')
    .action(lazily(declaration, () => import('../commands/train.js')));

  program
    .command('dpo')
    .description('Train a model on preferences in a JSONL, JSON, CSV or Parquet file')
    .argument('[data]', 'file of preferences; not needed with --resume')
    .option('-m, --model <model>', 'base model to train')
    .option('--from <path>', 'start from the weights of a tinker:// checkpoint instead of a base model')
    .option('--log <folder>', 'folder for metrics and checkpoints (default: runs/<data>-<time>)')
    .option('--resume <folder>', 'resume the run logged in this folder, with its options and its reference')
    .addOption(new Option('--loss <name>', 'which loss (default: dpo)').choices(['dpo', 'ipo', 'simpo', 'orpo']))
    .option('--beta <beta>', "the loss's beta, or lambda for orpo (default: 0.1, 2 for simpo)", number(0))
    .option('--reference <model>', `what to compare with: ${MODEL} (default: what training starts from)`)
    .option('--rank <n>', 'LoRA rank (default: 32)', integer(1))
    .option('--learning-rate <rate>', 'peak learning rate, falling linearly (default: 1e-5)', number(0))
    .option('--batch-size <n>', 'pairs in a step (default: 64)', integer(1))
    .option('--epochs <n>', 'how often to go through the data (default: 1)', integer(1))
    .option('--steps <n>', 'stop after so many steps, going through the data as often as needed', integer(1))
    .option('--max-length <tokens>', 'cut longer conversations', integer(2))
    .option('--renderer <name>', "how conversations are written (default: the model's)")
    .option('--seed <n>', 'for the order of the data and the first weights (default: 0)', integer(0))
    .option('--checkpoint-every <steps>', 'save so often (default: 20); always at the end', integer(1))
    .option('--ahead <n>', 'steps to submit ahead of results (default: 2)', integer(0))
    .option('--dashboard [port]', 'show the run in the browser', port)
    .option('--skip-bad-rows', 'skip rows that are no preferences instead of failing')
    .action(lazily(declaration, () => import('../commands/dpo.js')));

  program
    .command('distill')
    .description('Teach a model on its own answers to prompts, graded token by token by a teacher')
    .argument(
      '[prompts]',
      'file of prompts, one a line: text, or JSON (a string, {prompt}, {messages}); not needed with --resume',
    )
    .option('--teacher <model>', `who teaches: ${MODEL} (may be repeated; default: the model as it starts)`, several)
    .option('--teacher-system <text>', 'system message that only the teacher reads')
    .option('-m, --model <model>', 'base model to train')
    .option('--from <path>', 'start from the weights of a tinker:// checkpoint instead of a base model')
    .option('--log <folder>', 'folder for metrics and checkpoints (default: runs/<prompts>-<time>)')
    .option('--resume <folder>', 'resume the run logged in this folder, with its options')
    .option('--coefficient <c>', 'how much a token pulls for each nat of difference (default: 1)', number(0))
    .option('--rank <n>', 'LoRA rank (default: 32)', integer(1))
    .option('--learning-rate <rate>', 'learning rate (default: the one fitted for the model, or 1e-4)', number(0))
    .option('--batch-size <n>', 'prompts in a step (default: 64)', integer(1))
    .option('--group <n>', 'answers to each prompt (default: 4)', integer(1))
    .option('--max-tokens <n>', 'most tokens of an answer (default: 512)', integer(1))
    .option('--epochs <n>', 'how often to go through the prompts (default: 1)', integer(1))
    .option('--steps <n>', 'stop after so many steps, going through the prompts as often as needed', integer(1))
    .option('--renderer <name>', "how conversations are written (default: the model's)")
    .option('--seed <n>', 'for the samples and the first weights (default: 0)', integer(0))
    .option('--checkpoint-every <steps>', 'save so often (default: 20); always at the end', integer(1))
    .option('--dashboard [port]', 'show the run in the browser', port)
    .action(lazily(declaration, () => import('../commands/distill.js')));

  program
    .command('sample')
    .description('Sample for a prompt, a file of prompts, or prompts from standard input; results come as they finish')
    .argument('[prompt...]', 'the prompt; several words are one prompt')
    .requiredOption('-m, --model <model>', MODEL)
    .option(
      '--file <path>',
      'prompts, one a line: text, or JSON (a string, {prompt}, {messages}); or a .json, .csv or .parquet file of such rows',
    )
    .option('--whole', 'take the file or standard input as one prompt')
    .option('-n, --num-samples <n>', 'samples a prompt', integer(1), 1)
    .option('--max-tokens <n>', 'most tokens of a sample', integer(1), 256)
    .option('--temperature <t>', '0 is greedy', number(0), 1)
    .option('--top-p <p>', 'nucleus sampling', number(0), 1)
    .option('--top-k <k>', '-1 for all tokens', integer(-1), -1)
    .option('--seed <n>', 'the same seed gives the same samples where the service can', integer(0))
    .option('--stop <text>', "ends a sample (default: the model's own signal; may be repeated)", several)
    .option('--system <text>', 'system message')
    .option('--raw', 'continue the text as it is, without the chat format')
    .option('--renderer <name>', "how conversations are written (default: the model's)")
    .option('--logprobs', 'with --format json: tokens and their log probabilities too')
    .option('--concurrency <n>', 'prompts under way at once', integer(1), 200)
    .option('--out <file>', 'add results to this JSONL file as they finish, instead of printing them')
    .option('--resume', 'with --out: leave out the prompts whose results are in the file')
    .option('--skip-bad-rows', 'lines that are no prompts are told, and are no failure')
    .action(lazily(declaration, () => import('../commands/sample.js')));

  program
    .command('chat')
    .description('Talk to a base model or a checkpoint')
    .requiredOption('-m, --model <model>', MODEL)
    .option('--system <text>', 'system message')
    .option('--max-tokens <n>', 'most tokens of a reply', integer(1), 1024)
    .option('--temperature <t>', '0 is greedy', number(0), 0.7)
    .option('--top-p <p>', 'nucleus sampling', number(0), 1)
    .option('--renderer <name>', "how conversations are written (default: the model's)")
    .action(lazily(declaration, () => import('../commands/chat.js')));

  program
    .command('serve')
    .description("Serve a model over HTTP in the shapes of OpenAI's and Anthropic's APIs, until Ctrl-C")
    .requiredOption('-m, --model <model>', MODEL)
    .option('--port <port>', 'port to listen on, 0 for any free one', port, 0)
    .option('--host <address>', 'address to listen on (default: this machine only)')
    .option('--key <key>', 'API key that callers must send (default: a random one)')
    .option('--name <name>', 'name of the model for callers (default: what --model says)')
    .option('--renderer <name>', "how conversations are written (default: the model's)")
    .option(
      '--pieces <tokens>',
      'stream in pieces of so many tokens (default: when the answer is complete)',
      integer(1),
    )
    .option('--max-tokens <n>', 'most tokens one request may sample', integer(1), 16384)
    .option('--max-requests <n>', 'most requests at once; more are refused', integer(1), 256)
    .action(lazily(declaration, () => import('../commands/serve.js')));

  program
    .command('dashboard')
    .description('Show logged runs in the browser, live or afterwards, until Ctrl-C')
    .requiredOption('--log <folder>', 'folder of a run, or of several runs (may be repeated)', several)
    .option('--port <port>', 'port to listen on, 0 for any free one', port, 0)
    .option('--host <address>', 'address to listen on (default: this machine only)')
    .action(lazily(declaration, () => import('../commands/dashboard.js')));
}
