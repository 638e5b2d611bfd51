import type { Command } from 'commander';
import { integer, number, port, several, type Add, type CommandOptions } from '../declare.js';

// prettier-ignore
export const DEMO = {
  steps: { flag: '--steps <n>', parse: integer(1), help: 'how many steps to train (default: 60, with --model 10)' },
  model: { flag: '--model <model>', help: 'train a real language model: smollm2, qwen3, a repository, a folder or a .gguf file' },
  yes: { flag: '-y, --yes', help: 'do not ask before a download' },
  dashboard: { flag: '--dashboard [port]', parse: port, help: 'keep the dashboard open after the run, until Ctrl-C' },
  log: { flag: '--log <folder>', help: 'folder for the log of the run (default: a temporary one)' },
} as const satisfies CommandOptions;

// prettier-ignore
export const LOCAL = {
  port: { flag: '--port <port>', parse: port, default: 0, help: 'port to listen on, 0 for any free one' },
  data: { flag: '--data <folder>', help: 'where to keep checkpoints and records (default: a temporary folder)' },
  key: { flag: '--key <key>', help: 'API key that callers must send, tml-… (default: a random one)' },
  model: { flag: '--model <model>', parse: several, help: 'a language model to load: a repository of the hub, a folder or a .gguf file (may be repeated)' },
  threads: { flag: '--threads <n>', parse: integer(1), help: 'threads that compute (default: with --model as many as there are cores, up to 8)' },
  clock: { flag: '--clock <ms>', parse: number(0), default: 0, help: 'length of a lock-step cycle, 0 for none' },
  dialect: { flag: '--dialect <dialect>', choices: ['tinker', 'skyrl'], default: 'tinker', help: 'which server to behave like' },
  logprobs: { flag: '--logprobs <kind>', choices: ['raw', 'scaled'], default: 'raw', help: 'logprobs of sampled tokens: as the model has them, or scaled by the temperature' },
  strict: { flag: '--strict', help: 'refuse samples that cannot fit the context, and loss inputs that the loss does not read' },
} as const satisfies CommandOptions;

/** `demo` and `local`. */
export function declareLocal(program: Command, add: Add): void {
  add(program, 'demo', () => import('./demo.js'), DEMO).description(
    'Train a small model on this machine and ask it questions: everything in under a minute',
  );
  add(program, 'local', () => import('./local.js'), LOCAL).description(
    'Run the embedded Tinker service on this machine until Ctrl-C',
  );
}
