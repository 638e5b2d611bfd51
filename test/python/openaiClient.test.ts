import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { serveSampler } from '../../src/serve/index.js';
import { call, scripted } from '../loopback/support/scriptedSampler.js';

const SCRIPT = fileURLToPath(new URL('../parity/openai_client.py', import.meta.url));

it('Python’s own openai package reads what the gateway writes', { timeout: 300_000 }, async () => {
  const { sampler } = scripted(['Hello.', 'Streamed.', call('add', { a: 1 }), 'Answered.', 'Penalised.']);
  await using gateway = await serveSampler(sampler);
  const env = { ...process.env, OPENAI_BASE_URL: gateway.baseURL, OPENAI_API_KEY: gateway.apiKey };
  const { stdout } = await promisify(execFile)('python3', [SCRIPT], { env });
  expect(stdout.trim().split('\n').at(-1)).toBe('ok');
});
