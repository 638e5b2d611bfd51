import type { Command } from 'commander';
import { integer, lazily, port, several, type Declaration } from '../declare.js';

/** `serve` and `dashboard`. */
export function declareServe(program: Command, declaration: Declaration): void {
  program
    .command('serve')
    .description("Serve a model over HTTP in the shapes of OpenAI's and Anthropic's APIs, until Ctrl-C")
    .requiredOption('-m, --model <model>', 'base model, or tinker:// path of a checkpoint')
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
    .action(lazily(declaration, () => import('./serve.js')));

  program
    .command('dashboard')
    .description('Show logged runs in the browser, live or afterwards, until Ctrl-C')
    .option('--log <folder>', 'folder of a run, or of several runs (may be repeated)', several)
    .option('--evals <path>', 'result file of eval, or folder of them, to compare (may be repeated)', several)
    .option('--port <port>', 'port to listen on, 0 for any free one', port, 0)
    .option('--host <address>', 'address to listen on (default: this machine only)')
    .action(lazily(declaration, () => import('./dashboard.js')));
}
