import type { Command } from 'commander';
import { addConfigFile } from '../configFile.js';
import { integer, MODEL_HELP, number, several, type Add, type CommandOptions } from '../declare.js';

const RENDERER = { flag: '--renderer <name>', help: "chat format (default: the model's renderer)" } as const;
const SYSTEM = { flag: '--system <text>', help: 'system message' } as const;
const TOP_P = { flag: '--top-p <p>', parse: number(0), default: 1, help: 'nucleus sampling' } as const;

// prettier-ignore
export const SAMPLE = {
  model: { flag: '-m, --model <model>', isRequired: true, help: MODEL_HELP },
  file: { flag: '--file <path>', help: 'prompts, one per line: text, or JSON (a string, {prompt}, {question}, {messages}); or a .json, .csv or .parquet file of such rows' },
  column: { flag: '--column <name>', help: 'column of the rows that holds the prompts (default: prompt, question, input, text or messages)' },
  whole: { flag: '--whole', help: 'treat the file or standard input as a single prompt' },
  numSamples: { flag: '-n, --num-samples <n>', parse: integer(1), default: 1, help: 'samples per prompt' },
  maxTokens: { flag: '--max-tokens <n>', parse: integer(1), default: 256, help: 'maximum tokens per sample' },
  temperature: { flag: '--temperature <t>', parse: number(0), default: 1, help: '0 is greedy' },
  topP: TOP_P,
  topK: { flag: '--top-k <k>', parse: integer(-1), default: -1, help: '-1 for all tokens' },
  seed: { flag: '--seed <n>', parse: integer(0), help: 'random seed, if the service supports it' },
  stop: { flag: '--stop <text>', parse: several, help: "ends a sample (default: the model's own signal; may be repeated)" },
  system: SYSTEM,
  raw: { flag: '--raw', help: 'continue the text as it is, without the chat format' },
  renderer: RENDERER,
  logprobs: { flag: '--logprobs', help: 'with --format json: tokens and their log probabilities too' },
  concurrency: { flag: '--concurrency <n>', parse: integer(1), default: 200, help: 'maximum prompts in flight' },
  out: { flag: '--out <file>', help: 'append results to this JSONL file instead of printing them' },
  resume: { flag: '--resume', help: 'with --out: skip prompts that already have a result in the file' },
  skipBadRows: { flag: '--skip-bad-rows', help: 'skip invalid lines instead of failing' },
} as const satisfies CommandOptions;

// prettier-ignore
export const CHAT = {
  model: { flag: '-m, --model <model>', help: 'the same as the argument' },
  system: SYSTEM,
  maxTokens: { flag: '--max-tokens <n>', parse: integer(1), default: 1024, help: 'maximum tokens per reply' },
  temperature: { flag: '--temperature <t>', parse: number(0), default: 0.7, help: '0 is greedy' },
  topP: TOP_P,
  renderer: RENDERER,
  endpoint: { flag: '--endpoint <where>', help: "inference endpoint that streams: 'hosted', or a base URL of Anthropic's API" },
} as const satisfies CommandOptions;

/** `sample` and `chat`. */
export function declareSample(program: Command, add: Add): void {
  addConfigFile(add(program, 'sample', () => import('./sample.js'), SAMPLE))
    .description('Sample for a prompt, a file of prompts, or prompts from standard input; results come as they finish')
    .argument('[prompt...]', 'the prompt; several words are one prompt');
  add(program, 'chat', () => import('./chat.js'), CHAT)
    .description('Talk to a base model, a checkpoint or a run')
    .argument('[model]', MODEL_HELP);
}
