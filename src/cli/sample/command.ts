import type { Command } from 'commander';
import { integer, lazily, number, several, type Declaration } from '../declare.js';

const MODEL = 'base model, or tinker:// path of a checkpoint';

/** `sample` and `chat`. */
export function declareSample(program: Command, declaration: Declaration): void {
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
    .action(lazily(declaration, () => import('./sample.js')));

  program
    .command('chat')
    .description('Talk to a base model or a checkpoint')
    .requiredOption('-m, --model <model>', MODEL)
    .option('--system <text>', 'system message')
    .option('--max-tokens <n>', 'maximum tokens per reply', integer(1), 1024)
    .option('--temperature <t>', '0 is greedy', number(0), 0.7)
    .option('--top-p <p>', 'nucleus sampling', number(0), 1)
    .option('--renderer <name>', "chat format (default: the model's renderer)")
    .action(lazily(declaration, () => import('./chat.js')));
}
