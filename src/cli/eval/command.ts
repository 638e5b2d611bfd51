import type { Command } from 'commander';
import { addConfigFile } from '../configFile.js';
import { integer, MODEL_HELP, number, several, type Add, type CommandOptions } from '../declare.js';

// prettier-ignore
export const EVAL = {
  model: { flag: '-m, --model <model>', help: MODEL_HELP },
  scorer: { flag: '--scorer <scorer>', parse: several, help: 'exact, contains, numeric, json-schema=<file>, or a module; the first one counts (may be repeated)' },
  judge: { flag: '--judge <model>', help: 'a model that scores the answers by --criteria' },
  criteria: { flag: '--criteria <text>', help: 'what makes an answer good, for --judge' },
  rollout: { flag: '--rollout <module>', help: 'exports agent(renderer), for more than one turn: a hook as for grpo' },
  likelihood: { flag: '--likelihood', help: 'score the conversations of the file instead of asking: NLL, bits per byte, accuracy' },
  labels: { flag: '--labels <list>', help: 'decide between these labels, as a,b,c, in one request per row: accuracy, calibration' },
  system: { flag: '--system <text>', help: 'with --labels: system prompt before every row' },
  numSamples: { flag: '-n, --num-samples <n>', parse: integer(1), default: 1, help: 'answers per task; with several, pass@k is reported' },
  maxTokens: { flag: '--max-tokens <n>', parse: integer(1), default: 512, help: 'maximum tokens per answer' },
  temperature: { flag: '--temperature <t>', parse: number(0), default: 1, help: '0 is greedy' },
  topP: { flag: '--top-p <p>', parse: number(0), default: 1, help: 'nucleus sampling' },
  topK: { flag: '--top-k <k>', parse: integer(-1), default: -1, help: '-1 for all tokens' },
  seed: { flag: '--seed <n>', parse: integer(0), default: 0, help: 'seed for all samples' },
  passAt: { flag: '--pass-at <score>', parse: number(), default: 0.5, help: 'a score from this on is a pass' },
  renderer: { flag: '--renderer <name>', help: "chat format (default: the model's renderer)" },
  concurrency: { flag: '--concurrency <n>', parse: integer(1), default: 200, help: 'answers in flight at once' },
  retries: { flag: '--retries <n>', parse: integer(0), default: 2, help: 'how often an answer that failed is asked for again' },
  limit: { flag: '--limit <n>', parse: integer(1), help: 'only the first n tasks' },
  out: { flag: '--out <file>', help: 'result file (default: <tasks>-<time>.eval.jsonl)' },
  resume: { flag: '--resume', help: 'with --out: ask only what the file lacks' },
  retryFailures: { flag: '--retry-failures', help: 'with --resume: also ask examples again that failed' },
  budgetUsd: { flag: '--budget-usd <dollars>', parse: number(0), help: 'stop once the evaluation has cost this much' },
  budgetTokens: { flag: '--budget-tokens <n>', parse: integer(1), help: 'stop once the evaluation has used this many tokens' },
  prices: { flag: '--prices <file>', help: 'prices of models (default: the dated list of this release)' },
} as const satisfies CommandOptions;

export const COMPARE = {
  failIfWorse: { flag: '--fail-if-worse', help: 'exit code 1 where the second is worse by more than chance' },
  confidence: { flag: '--confidence <share>', parse: number(), default: 0.95, help: 'how sure the verdict is' },
  worst: { flag: '--worst <n>', parse: integer(0), default: 5, help: 'how many regressions are shown' },
} as const satisfies CommandOptions;

/** `eval` and `eval compare`. */
export function declareEval(program: Command, add: Add): void {
  const evaluation = addConfigFile(
    add(program, 'eval', () => import('./eval.js'), EVAL),
    'tasks',
  )
    .description('Ask a model every task of a file, score the answers, and keep the results in a file')
    .argument('[tasks]', 'file of tasks: JSONL, CSV or Parquet');
  add(evaluation, 'compare', () => import('./compare.js'), COMPARE)
    .description('Compare two result files example by example')
    .argument('<before>', 'result file')
    .argument('<after>', 'result file of the same tasks');
}
