import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { CliError } from '../../CliError.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** The token of the Hugging Face hub: `HF_TOKEN`, or the file that `hf auth login` writes. */
export function hubToken(environment: Environment = process.env): string {
  const home =
    environment['HF_HOME'] ?? join(environment['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'huggingface');
  const fromFile = () => {
    try {
      return readFileSync(environment['HF_TOKEN_PATH'] ?? join(home, 'token'), 'utf8');
    } catch {
      return '';
    }
  };
  const token = (environment['HF_TOKEN'] || fromFile()).trim();
  if (token === '')
    throw new CliError('Not logged in to Hugging Face', { details: 'Run: hf auth login, or set HF_TOKEN' });
  return token;
}

export const hubEndpoint = (environment: Environment = process.env): string =>
  (environment['HF_ENDPOINT'] || 'https://huggingface.co').replace(/\/+$/, '');
