import type { Command } from 'commander';
import { integer, lazily, number, several, type Declaration } from '../declare.js';

/** `eval` and `eval compare`. */
export function declareEval(program: Command, declaration: Declaration): void {
  const evaluation = program
    .command('eval')
    .description('Ask a model every task of a file, score the answers, and keep the results in a file')
    .argument('[tasks]', 'file of tasks: JSONL, CSV or Parquet')
    .option('-m, --model <model>', 'base model, or tinker:// path of a checkpoint')
    .option(
      '--scorer <scorer>',
      'exact, contains, numeric, json-schema=<file>, or a module; the first one counts (may be repeated)',
      several,
    )
    .option('--judge <model>', 'a model that scores the answers by --criteria')
    .option('--criteria <text>', 'what makes an answer good, for --judge')
    .option('--rollout <module>', 'exports agent(renderer), for more than one turn: a hook as for grpo')
    .option('--likelihood', 'score the conversations of the file instead of asking: NLL, bits per byte, accuracy')
    .option('-n, --num-samples <n>', 'answers per task; with several, pass@k is reported', integer(1), 1)
    .option('--max-tokens <n>', 'maximum tokens per answer', integer(1), 512)
    .option('--temperature <t>', '0 is greedy', number(0), 1)
    .option('--top-p <p>', 'nucleus sampling', number(0), 1)
    .option('--top-k <k>', '-1 for all tokens', integer(-1), -1)
    .option('--seed <n>', 'seed for all samples', integer(0), 0)
    .option('--pass-at <score>', 'a score from this on is a pass', number(), 0.5)
    .option('--renderer <name>', "chat format (default: the model's renderer)")
    .option('--concurrency <n>', 'answers in flight at once', integer(1), 200)
    .option('--retries <n>', 'how often an answer that failed is asked for again', integer(0), 2)
    .option('--limit <n>', 'only the first n tasks', integer(1))
    .option('--out <file>', 'result file (default: <tasks>-<time>.eval.jsonl)')
    .option('--resume', 'with --out: ask only what the file lacks')
    .option('--retry-failures', 'with --resume: also ask examples again that failed')
    .option('--budget-usd <dollars>', 'stop once the evaluation has cost this much', number(0))
    .option('--budget-tokens <n>', 'stop once the evaluation has used this many tokens', integer(1))
    .option('--prices <file>', 'prices of models (default: the dated list of this release)')
    .action(lazily(declaration, () => import('./eval.js')));
  evaluation
    .command('compare')
    .description('Compare two result files example by example')
    .argument('<before>', 'result file')
    .argument('<after>', 'result file of the same tasks')
    .option('--fail-if-worse', 'exit code 1 where the second is worse by more than chance')
    .option('--confidence <share>', 'how sure the verdict is', number(), 0.95)
    .option('--worst <n>', 'how many regressions are shown', integer(0), 5)
    .action(lazily(declaration, () => import('./compare.js')));
}
