/** Access to a service from the command line: files with keys, hosts that are not there, servers that are something else. */
import { statSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { commandHome } from './support/commandHome.js';
import { run, type FakeTerminal, type Ran } from '../unit/cli/terminal.js';

const home = commandHome();

/** What differs from run to run, as long as it was. */
const steady = (text: string): string =>
  text.replaceAll(home.local.url, 'http://127.0.0.1:12345').replaceAll(home.folder, '/folder');
const golden = (name: string, text: string) => expect(steady(text)).toMatchFileSnapshot(`golden/cli/${name}.txt`);
const ok = async (args: readonly string[], terminal?: FakeTerminal): Promise<Ran> => {
  const ran = await run(args, terminal);
  expect(ran.stderr).not.toContain('Error');
  expect(ran.code).toBe(0);
  return ran;
};

describe('auth', () => {
  it('logs in, is known, and logs out', async () => {
    const key = home.local.apiKey;
    vi.stubEnv('TINKER_API_KEY', '');
    expect((await run(['auth', 'status'])).stdout).toBe('Credentials available: no\n');
    for (const args of [
      ['run', 'list'],
      ['sample', '-m', 'x', 'hi'],
      ['billing', 'checkpoint-storage'],
    ])
      expect(await run(args)).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(/^Error: No API key\nLog in with: tinker-rx auth login/) as string,
      });
    const bad = await run(['auth', 'login'], { input: 'tml-wrong\n' });
    expect(bad.code).toBe(1);
    expect(bad.stderr).toContain('Error: Could not validate the API key\nAuthentication failed');

    const { stdout, stderr } = await ok(['auth', 'login'], { input: `${key}\n` });
    await golden('auth-login', stdout);
    expect(stdout + stderr).not.toContain(key);
    const file = join(home.folder, '.tinker', 'credentials.json');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect((await run(['auth', 'login'], { input: `${key}\n` })).stderr).toContain('Already logged in');
    await golden('auth-status', (await ok(['auth', 'status'])).stdout);
    await golden('auth-whoami', (await ok(['auth', 'whoami'])).stdout);
    await golden('auth-logout', (await ok(['auth', 'logout'])).stdout);
    expect((await run(['auth', 'logout'])).code).toBe(1);
    vi.stubEnv('TINKER_API_KEY', key);
  });
});

describe('doctor', () => {
  it('finds that all is well', async () => {
    const { stdout } = await ok(['doctor']);
    await golden(
      'doctor',
      stdout
        .replace(/^(✓ Node +).*/m, '$1XX')
        .replace(/^(✓ tinker-rx +)[^,]*/m, '$1XX')
        .replace(/\d+ ms/g, 'XX ms'),
    );
  });
  it.each([
    [{ TINKER_API_KEY: 'tml-wrong' }, /✗ Access +Authentication failed\n +The service on this machine has another key/],
    [{ TINKER_API_KEY: 'tml-with space' }, /✗ Key +TINKER_API_KEY holds white space/],
    [{ TINKER_API_KEY: 'sk-123' }, /✗ Key +TINKER_API_KEY does not begin with 'tml-'/],
    [{ TINKER_API_KEY: '' }, /✗ Key +none\n +Log in with tinker-rx auth login/],
    [
      { TINKER_BASE_URL: 'http://127.0.0.1:64999' },
      /✗ Health +.*ECONNREFUSED.*\n +Nothing is listening there: start .* tinker-rx local/,
    ],
    [{ TINKER_BASE_URL: 'http://nowhere.invalid' }, /✗ Health +.*\n +There is no host of this name/],
    [{ TINKER_BASE_URL: 'nonsense' }, /✗ URL +the base URL is not a URL/],
  ])('says what is wrong with %j, and ends with 1', async (environment, message) => {
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
    const { code, stdout } = await run(['doctor']);
    vi.stubEnv('TINKER_BASE_URL', home.local.url);
    vi.stubEnv('TINKER_API_KEY', home.local.apiKey);
    expect(stdout).toMatch(message);
    expect(code).toBe(1);
    if ('TINKER_API_KEY' in environment && environment.TINKER_API_KEY !== '')
      expect(stdout).not.toContain(environment.TINKER_API_KEY);
  });

  it('knows a service from a web page, an ill service and an address with too much on it', async () => {
    let answer: (response: ServerResponse) => void = () => {};
    const server = createServer((_, response) => answer(response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const ask = async (path: string, reply: (response: ServerResponse) => void) => {
      answer = reply;
      const { code, stdout } = await run(['doctor', '--base-url', `${url}${path}`]);
      expect(code).toBe(1);
      return stdout;
    };
    expect(await ask('', (response) => response.end('<html>'))).toMatch(
      /✗ Health +answers, but not as a Tinker service/,
    );
    const status = (code: number) => (response: ServerResponse) => response.writeHead(code).end();
    expect(await ask('', status(404))).toMatch(/✗ Health +HTTP 404\n +A server answers there, but it is not a Tinker/);
    expect(await ask('', status(503))).toMatch(/✗ Health +HTTP 503\n +A server answers there, but it is failing/);
    expect(await ask('/api/v1', status(404))).toMatch(/✗ Health +HTTP 404\n +Leave \/api\/v1 out/);
    await new Promise((resolve) => server.close(resolve));
    expect((await run(['doctor', '--base-url', `${home.local.url}/api/v1`])).stdout).toContain('Leave /api/v1 out');
  });
});
