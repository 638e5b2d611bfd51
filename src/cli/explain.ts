import type { CliErrorOptions } from './CliError.js';
import { CliError } from './CliError.js';

/** What each code of a TinkerError means to somebody at a terminal. */
const TINKER: Readonly<Record<string, readonly [message: string, advice?: string]>> = {
  not_found: ['Resource not found'],
  authentication: [
    'Authentication failed',
    'The service does not accept this key; tinker-rx doctor shows where it comes from.',
  ],
  credential: ['No usable credential', 'Log in with: tinker-rx auth login'],
  billing: ['Billing issue', 'Check that billing is set up for your account.'],
  permission_denied: ['Permission denied', "You don't have access to this."],
  bad_request: ['Invalid request'],
  unprocessable: ['Invalid data'],
  rate_limit: ['Rate limit exceeded', 'Wait a moment and try again.'],
  server: ['Internal server error', 'The service failed; try again later.'],
  timeout: ['Request timed out', 'Try again; tinker-rx doctor measures the connection.'],
  connection: ['Connection failed', 'Check the network and TINKER_BASE_URL; tinker-rx doctor says what is wrong.'],
  unsupported_version: ['This version is no longer supported', 'Upgrade: npm install -g tinker-rx@latest'],
};

const SYSTEM: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'is on a read-only disk',
  EDQUOT: 'the quota of the disk is used up',
  EADDRINUSE: 'the port is in use already',
  ENOSPC: 'no space left on the device',
  EISDIR: 'is a folder',
  ENOTDIR: 'is not a folder',
  EEXIST: 'exists already',
};

const NO_KEY = {
  message: 'No API key',
  details:
    'Log in with: tinker-rx auth login (or set TINKER_API_KEY)\nTo try it without a key: tinker-rx demo, or tinker-rx local',
};

export interface Explanation extends CliErrorOptions {
  readonly message: string;
  readonly exitCode: number;
}

/** Any failure as a sentence, advice and an exit code; never a stack. */
export function explain(error: unknown): Explanation {
  if (error instanceof CliError) return withDetails(error.message, error.exitCode, error.details);
  if (!(error instanceof Error)) return { message: String(error), exitCode: 1 };
  const { code, path, port } = error as { code?: unknown; path?: unknown; port?: unknown };
  // By code, not by class: the classes would have to be loaded to be compared with.
  const known = typeof code === 'string' && 'retryable' in error ? TINKER[code] : undefined;
  if (known !== undefined) {
    const [message, advice] = known;
    return withDetails(
      message,
      1,
      [advice, `Details: ${error.message}`].filter((part) => part !== undefined).join('\n'),
    );
  }
  // The client speaks to programs; here a command is the way.
  if (code === 'invalid_input' && error.message.startsWith('no API key')) return { ...NO_KEY, exitCode: 1 };
  const system = typeof code === 'string' ? SYSTEM[code] : undefined;
  if (system !== undefined) {
    const what = typeof path === 'string' ? path : typeof port === 'number' ? `port ${port}` : undefined;
    return { message: what === undefined ? system : `${what}: ${system}`, exitCode: 1 };
  }
  // `fetch failed` alone says nothing.
  if (error.message === 'fetch failed' && error.cause instanceof Error)
    return { message: `Connection failed: ${error.cause.message || 'no answer'}`, exitCode: 1 };
  return { message: error.message, exitCode: 1 };
}

const withDetails = (message: string, exitCode: number, details: string | undefined): Explanation =>
  details === undefined ? { message, exitCode } : { message, exitCode, details };
