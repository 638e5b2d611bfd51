/** Files of the embedded service in parts, and downloads of them that break off and go on. */
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { RestClient, ServiceClient } from 'tinker-rx';
import { LocalTinker } from 'tinker-rx/local';
import { runCli } from '../../src/cli/program.js';
import { run, surroundings } from '../unit/cli/terminal.js';

interface FileRequest {
  readonly file: string;
  readonly range: string | undefined;
  readonly ifRange: string | undefined;
  readonly status: number;
}

const WEIGHTS = 'adapter_model.safetensors';
let local: LocalTinker;
let files: FileRequest[];
let state: string;
let external: string;
let folder: string;

beforeAll(async () => {
  local = await LocalTinker.start({
    onResponse: ({ request: { endpoint, headers }, status }) => {
      if (!endpoint.startsWith('files/')) return;
      const file = decodeURIComponent(endpoint.split('/').at(-1)!);
      files.push({ file, range: headers.range, ifRange: headers['if-range'] as string | undefined, status });
    },
  });
  vi.stubEnv('TINKER_BASE_URL', local.url);
  vi.stubEnv('TINKER_API_KEY', local.apiKey);
  vi.stubEnv('NO_COLOR', '1');
  await using service = new ServiceClient();
  const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 32, seed: 1 });
  ({ path: state } = await trainer.saveState('state'));
  ({ path: external } = await trainer.saveWeightsExternal('external'));
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await local.close();
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-download-'));
  files = [];
});
afterEach(() => {
  local.controls.faults = { rules: [] };
  rmSync(folder, { recursive: true });
});

describe('a file of the embedded service', () => {
  let url: string;
  let whole: Buffer;
  let etag: string;
  beforeAll(async () => {
    files = [];
    await using rest = new RestClient();
    url = (await rest.getExternalWeightsUrls(external)).urls[WEIGHTS]!;
    const response = await fetch(url);
    whole = Buffer.from(await response.arrayBuffer());
    etag = response.headers.get('etag')!;
  });
  const ask = async (headers: Record<string, string>) => {
    const response = await fetch(url, { headers });
    return { status: response.status, headers: response.headers, body: Buffer.from(await response.arrayBuffer()) };
  };

  it('says its version, its checksum and that it can be had in parts', async () => {
    const { status, headers } = await ask({});
    const sha256 = createHash('sha256').update(whole);
    expect(status).toBe(200);
    expect(headers.get('etag')).toBe(`"${sha256.copy().digest('hex')}"`);
    expect(headers.get('repr-digest')).toBe(`sha-256=:${sha256.digest('base64')}:`);
    expect(headers.get('accept-ranges')).toBe('bytes');
    expect(headers.get('content-length')).toBe(String(whole.length));
  });

  it.each([
    ['bytes=1000-', 1000, undefined],
    ['bytes=0-99', 0, 99],
    ['bytes=-10', -10, undefined],
    ['bytes=5-999999999', 5, undefined],
  ])('sends %s with 206', async (range, from, to) => {
    const { status, headers, body } = await ask({ range });
    const first = from < 0 ? whole.length + from : from;
    const last = to ?? whole.length - 1;
    expect(status).toBe(206);
    expect(headers.get('content-range')).toBe(`bytes ${first}-${last}/${whole.length}`);
    expect(headers.get('content-length')).toBe(String(last - first + 1));
    expect(body.equals(whole.subarray(first, last + 1))).toBe(true);
  });

  it('sends a part only of the version that is asked for', async () => {
    expect((await ask({ range: 'bytes=9-', 'if-range': etag })).status).toBe(206);
    for (const other of ['"another"', `W/${etag}`]) {
      const { status, body } = await ask({ range: 'bytes=9-', 'if-range': other });
      expect(status).toBe(200);
      expect(body.equals(whole)).toBe(true);
    }
  });

  it.each([`bytes=${10 ** 9}-`, 'bytes=-0'])('has no bytes %s: 416', async (range) => {
    const { status, headers, body } = await ask({ range });
    expect(status).toBe(416);
    expect(headers.get('content-range')).toBe(`bytes */${whole.length}`);
    expect(body).toHaveLength(0);
  });

  it.each(['bytes=0-1,5-6', 'lines=1-2', 'bytes=9-3', 'bytes=-'])('takes %s for no range', async (range) => {
    expect((await ask({ range })).status).toBe(200);
  });

  it('is not sent to who has it', async () => {
    expect(await ask({ 'if-none-match': `"x", ${etag}` })).toMatchObject({ status: 304, body: Buffer.alloc(0) });
    expect((await ask({ 'if-none-match': '"x"' })).status).toBe(200);
  });

  it('may be an archive', async () => {
    const run = state.split('/')[2]!;
    const archive = `${local.url}/api/v1/training_runs/${run}/checkpoints/weights/state/archive`;
    const redirect = await fetch(archive, { headers: { 'x-api-key': local.apiKey }, redirect: 'manual' });
    const location = redirect.headers.get('location')!;
    const all = await fetch(location);
    const bytes = Buffer.from(await all.arrayBuffer());
    const headers = { range: 'bytes=512-', 'if-range': all.headers.get('etag')! };
    const part = await fetch(location, { headers });
    expect(part.status).toBe(206);
    expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(512))).toBe(true);
  });
});

describe('checkpoint download', () => {
  const cut = (times: number) => ({
    rules: [{ endpoint: `files/*/${WEIGHTS}`, times, fault: { type: 'truncate' as const, keepBytes: 30_000 } }],
  });
  const download = (path: string) => ['checkpoint', 'download', path, '-o', folder];
  const target = (path: string) => join(folder, path.slice('tinker://'.length).replace(/[/:]/g, '_'));
  const weights = () => files.filter(({ file }) => file === WEIGHTS);
  /** A download that Ctrl-C ends after the first 30,000 bytes. */
  const breakOff = async (path: string) => {
    local.controls.faults = cut(1);
    const interrupted$ = new Subject<void>();
    const { surroundings: around, written } = surroundings({ interrupted$ });
    const ended = runCli(download(path), around);
    await vi.waitFor(() => expect(written.stderr).toContain('trying again'), { timeout: 240_000, interval: 5 });
    interrupted$.next();
    expect(await ended).toBe(130);
  };
  /** What the service has, asked for whole. */
  const expected = async () => {
    await using rest = new RestClient();
    const { urls } = await rest.getExternalWeightsUrls(external);
    return Buffer.from(await (await fetch(urls[WEIGHTS]!)).arrayBuffer());
  };

  it('goes on where a connection broke off', async () => {
    local.controls.faults = cut(1);
    const { code, stderr } = await run(download(external));
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('trying again') as string });
    const [, second] = weights();
    expect(second).toMatchObject({ range: 'bytes=30000-', status: 206 });
    expect(second!.ifRange).toMatch(/^"[0-9a-f]{64}"$/);
    expect(readFileSync(join(target(external), WEIGHTS)).equals(await expected())).toBe(true);
  });

  // A training checkpoint is exported anew by each command: the bytes are the same, so the version is.
  it.each([
    ['exported weights', () => external],
    ['a training checkpoint', () => state],
  ])('of %s, stopped by Ctrl-C in the middle of a file, goes on with the next command', async (_, which) => {
    const path = which();
    await breakOff(path);
    expect(existsSync(target(path))).toBe(false);
    expect(statSync(join(`${target(path)}.partial`, WEIGHTS)).size).toBe(30_000);

    files = [];
    const { code } = await run(download(path));
    expect(code).toBe(0);
    expect(weights()).toMatchObject([{ range: 'bytes=30000-', status: 206 }]);
    expect(readFileSync(join(target(path), WEIGHTS)).equals(await expected())).toBe(true);
    expect(readdirSync(target(path)).sort()).toStrictEqual(['adapter_config.json', WEIGHTS]);
  });

  it('starts the file anew where it is not the same any more', async () => {
    await using service = new ServiceClient();
    const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 32, seed: 2 });
    const { path } = await trainer.saveWeightsExternal('moving');
    await breakOff(path);
    await service.rest.deleteCheckpointFromTinkerPath(path);
    const other = await service.createTrainingClientFromState(state);
    const moved = await other.saveWeightsExternal('moving');
    files = [];
    // The same folder, as if the checkpoint of that name had been replaced.
    renameSync(`${target(path)}.partial`, `${target(moved.path)}.partial`);
    expect((await run(download(moved.path))).code).toBe(0);
    expect(weights()).toMatchObject([{ range: expect.stringMatching(/^bytes=\d+-$/) as string, status: 200 }]);
    expect(readFileSync(join(target(moved.path), WEIGHTS)).equals(await expected())).toBe(true);
  });

  it('refuses bytes that are not those of the checksum', async () => {
    const manifest = readdirSync(local.dataFolder, { recursive: true })
      .map(String)
      .find((name) => name.includes('external_weights/external/') && name.endsWith(WEIGHTS))!;
    const path = join(local.dataFolder, manifest);
    const good = readFileSync(path);
    const bad = Buffer.from(good);
    bad[bad.length - 1]! ^= 1;
    writeFileSync(path, bad);
    const { code, stderr } = await run(download(external));
    writeFileSync(path, good);
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the sha256 checksum is not the one the server gave') as string,
    });
    expect(existsSync(target(external))).toBe(false);
  });
});
