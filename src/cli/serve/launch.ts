import { spawn } from 'node:child_process';
import type { ServedGateway } from '../../serve/index.js';
import { CliError } from '../CliError.js';
import type { SERVE } from './command.js';

type Launchable = (typeof SERVE.launch.choices)[number];

/** How a coding agent is told where its model is. */
interface Launcher {
  readonly environment: (gateway: ServedGateway, model: string) => Readonly<Record<string, string>>;
  /** Arguments before the user's. */
  readonly args: (gateway: ServedGateway, model: string) => readonly string[];
}

const LAUNCHERS: Readonly<Record<Launchable, Launcher>> = {
  claude: {
    environment: ({ url, apiKey }, model) => ({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_AUTH_TOKEN: apiKey,
      // One key only: the agent asks what to do where it finds two.
      ANTHROPIC_API_KEY: '',
      ANTHROPIC_MODEL: model,
      ANTHROPIC_DEFAULT_OPUS_MODEL: model,
      ANTHROPIC_DEFAULT_SONNET_MODEL: model,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    }),
    args: () => [],
  },
  codex: {
    environment: ({ baseURL, apiKey }) => ({ OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey }),
    args: ({ baseURL }, model) => [
      ...['-c', 'model_provider="tinker-rx"'],
      ...[
        '-c',
        `model_providers.tinker-rx={name="tinker-rx",base_url="${baseURL}",env_key="OPENAI_API_KEY",wire_api="responses"}`,
      ],
      ...['-m', model],
    ],
  },
};

/** Runs a coding agent against the gateway, in this terminal; gives its exit code. @throws CliError if it is not installed */
export function launch(
  name: Launchable,
  gateway: ServedGateway,
  model: string,
  args: readonly string[],
): Promise<number> {
  const { environment, args: own } = LAUNCHERS[name];
  return new Promise((resolve, reject) => {
    const agent = spawn(name, [...own(gateway, model), ...args], {
      stdio: 'inherit',
      env: { ...process.env, ...environment(gateway, model) },
    });
    agent.once('error', ({ message }) =>
      reject(
        new CliError(`${name} cannot be started: ${message}`, {
          details: `Install it, so that '${name}' runs in this terminal.`,
        }),
      ),
    );
    agent.once('exit', (code, signal) => resolve(code ?? (signal === null ? 1 : 128)));
  });
}
