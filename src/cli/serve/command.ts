import type { Command } from 'commander';
import { addConfigFile } from '../configFile.js';
import { integer, MODEL_HELP, port, several, type Add, type CommandOptions } from '../declare.js';

const PORT = { flag: '--port <port>', parse: port, default: 0, help: 'port to listen on, 0 for any free one' } as const;
const HOST = { flag: '--host <address>', help: 'address to listen on (default: this machine only)' } as const;

// prettier-ignore
export const SERVE = {
  model: { flag: '-m, --model <model>', help: 'the same as the argument; with --upstream: the model to ask for' },
  upstream: { flag: '--upstream <url>', help: "pass calls on: base URL of an OpenAI- or Anthropic-compatible service, or 'hosted'" },
  upstreamKey: { flag: '--upstream-key <name>', help: 'variable with the key of the upstream (default: UPSTREAM_API_KEY)' },
  record: { flag: '--record <file>', help: 'write calls, and what is sent to POST /feedback, into a JSONL file' },
  redact: { flag: '--redact <module>', help: 'with --record: default export changes a call before it is written, or drops it' },
  launch: { flag: '--launch <agent>', choices: ['claude', 'codex'], help: 'run a coding agent against it, with the arguments after --' },
  port: PORT,
  host: HOST,
  key: { flag: '--key <key>', help: 'API key that callers must send (default: a random one)' },
  name: { flag: '--name <name>', help: 'name of the model for callers (default: as it is named here)' },
  renderer: { flag: '--renderer <name>', help: "chat format (default: the model's renderer)" },
  pieces: { flag: '--pieces <tokens>', parse: integer(1), help: 'stream in pieces of n tokens (default: when the answer is complete)' },
  maxTokens: { flag: '--max-tokens <n>', parse: integer(1), default: 16384, help: 'maximum tokens per request' },
  maxRequests: { flag: '--max-requests <n>', parse: integer(1), default: 256, help: 'maximum requests at once; more are refused' },
  timeout: { flag: '--timeout <seconds>', parse: integer(1), default: 600, help: 'maximum time for an answer; then it is refused' },
  allowHost: { flag: '--allow-host <name>', parse: several, help: 'name under which it may be called, also by web pages (may be repeated)' },
  keys: { flag: '--keys <file>', help: 'JSON list of more keys: key, name, maxRequests, models' },
  strict: { flag: '--strict', help: 'refuse what cannot be honoured instead of warning of it' },
  accessLog: { flag: '--access-log', help: 'a line of JSON on standard error for every request' },
  drain: { flag: '--drain <seconds>', parse: integer(0), default: 30, help: 'time for requests to end after Ctrl-C or SIGTERM' },
} as const satisfies CommandOptions;

// prettier-ignore
export const DASHBOARD = {
  log: { flag: '--log <folder>', parse: several, help: 'folder of a run, or of several runs (may be repeated)' },
  evals: { flag: '--evals <path>', parse: several, help: 'result file of eval, or folder of them, to compare (may be repeated)' },
  port: PORT,
  host: HOST,
} as const satisfies CommandOptions;

/** `serve` and `dashboard`. */
export function declareServe(program: Command, add: Add): void {
  addConfigFile(add(program, 'serve', () => import('./serve.js'), SERVE))
    .description("Serve a model over HTTP in the shapes of OpenAI's and Anthropic's APIs, until Ctrl-C")
    .argument('[model]', MODEL_HELP)
    .argument('[args...]', 'with --launch, after --: arguments of the agent');
  add(program, 'dashboard', () => import('./dashboard.js'), DASHBOARD).description(
    'Show logged runs in the browser, live or afterwards, until Ctrl-C',
  );
}
