/** Progress of whole commands: a tokenizer that comes slowly from the hub, and data that takes its time. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LocalTinker } from 'tinker-rx/local';
import { runCli } from '../../src/cli/program.js';
import { COMMIT, fail, HubServer, send } from '../unit/chat/tokenizerHubServer.js';
import { surroundings } from '../unit/cli/terminal.js';
import { FakeEngine } from './localFakeEngine.js';

const SMALL = new URL('../parity/recorded/tokenizers/small/byte-level/', import.meta.url);
let folder: string;
let hub: HubServer;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-progress-'));
  hub = await HubServer.start({});
  vi.stubEnv('HF_ENDPOINT', hub.url);
  vi.stubEnv('HF_HOME', folder);
  vi.stubEnv('HF_HUB_OFFLINE', '');
  vi.stubEnv('NO_COLOR', '1');
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await hub[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** A hub with the files of one small tokenizer as those of `fake/model`. Sends half of the large one, and the rest when told to. */
function serveHalf(): () => void {
  let sendRest = () => {};
  const files = new Map(
    ['tokenizer.json', 'tokenizer_config.json'].map((name) => [
      name,
      { content: readFileSync(new URL(name, SMALL)), isLarge: true },
    ]),
  );
  hub.intercept = ({ url = '', method = '' }, response) => {
    const name = /^\/fake\/model\/resolve\/main\/(.+)$/.exec(url)?.[1] ?? '';
    const file = files.get(name);
    if (file === undefined) fail(response, 404, 'EntryNotFound', { 'x-repo-commit': COMMIT });
    else if (method === 'GET' && name === 'tokenizer.json') {
      const half = Math.floor(file.content.length / 2);
      response.writeHead(200, { 'content-length': file.content.length });
      response.write(file.content.subarray(0, half));
      sendRest = () => response.end(file.content.subarray(half));
    } else send(response, file, method, undefined, { 'x-repo-commit': COMMIT });
    return true;
  };
  return () => sendRest();
}

it('sample shows the bytes of a tokenizer on their way', async () => {
  const sendRest = serveHalf();
  await using local = await LocalTinker.start({ engine: new FakeEngine() });
  vi.stubEnv('TINKER_BASE_URL', local.url);
  vi.stubEnv('TINKER_API_KEY', local.apiKey);
  const args = ['sample', '-m', 'fake/model', '--renderer', 'role_colon', '--max-tokens', '2', 'hi'];
  const { surroundings: around, written } = surroundings({ columns: 100 });
  const ended = runCli(args, around);
  const half = /\rtokenizer of fake\/model {2}█+░+ {2}(49|50) % {2}[\d.]+ KB of [\d.]+ KB/;
  await vi.waitFor(() => expect(written.stderr).toMatch(half), { timeout: 240_000, interval: 20 });
  sendRest();
  expect(await ended).toBe(0);
  // The line is gone at the end.
  expect(written.stderr.endsWith('\r\u001b[K')).toBe(true);
});

it('train shows bytes, conversations and tokens of the data it reads', async () => {
  await using local = await LocalTinker.start();
  vi.stubEnv('TINKER_BASE_URL', local.url);
  vi.stubEnv('TINKER_API_KEY', local.apiKey);
  const data = join(folder, 'big.jsonl');
  const messages = [
    { role: 'user', content: 'What is the capital of France? '.repeat(20) },
    { role: 'assistant', content: 'Paris.' },
  ];
  writeFileSync(data, `${JSON.stringify({ messages })}\n`.repeat(20_000));
  const interrupted$ = new Subject<void>();
  const { surroundings: around, written } = surroundings({ interrupted$, columns: 120 });
  const args = ['train', data, '-m', 'tinker-rx/tiny', '--log', join(folder, 'log')];
  // A clock that runs ten times as fast, so that a second is over soon.
  const begunMs = Date.now();
  const ended = runCli(args, { ...around, now: () => begunMs + 10 * (Date.now() - begunMs) });
  await vi.waitFor(
    () =>
      expect(written.stderr).toMatch(
        /\rreading big\.jsonl {2}█*░+ {2}\d+ % {2}[\d.]+ MB of 13\.\d MB .*[1-9][\d,]* conversations {2}[1-9][\d,]* tokens/,
      ),
    { timeout: 240_000, interval: 20 },
  );
  interrupted$.next();
  expect(await ended).toBe(130);
});
