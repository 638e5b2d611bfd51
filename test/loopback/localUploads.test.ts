/** What the SDK's reference says of 0.39, at the embedded service: searching checkpoints, and uploading an adapter. No recording: that release was not run. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { RestClient, ServiceClient } from 'tinker-rx';
import { LocalTinker } from 'tinker-rx/local';
import { run } from '../unit/cli/terminal.js';

const MODEL = 'tinker-rx/tiny';
const WEIGHTS = 'adapter_model.safetensors';
const CONFIG = 'adapter_config.json';
let local: LocalTinker;
let rest: RestClient;
let external: string;
let folder: string;
const paths: string[] = [];

beforeAll(async () => {
  local = await LocalTinker.start();
  vi.stubEnv('TINKER_BASE_URL', local.url);
  vi.stubEnv('TINKER_API_KEY', local.apiKey);
  vi.stubEnv('NO_COLOR', '1');
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-upload-'));
  await using service = new ServiceClient({ projectId: 'apples' });
  const trainer = await service.createLoraTrainingClient({ baseModel: MODEL, rank: 4, trainUnembed: false });
  for (const [name, team] of [
    ['one', 'a'],
    ['two', 'b'],
    ['three', 'a'],
  ] as const)
    paths.unshift((await trainer.saveState(name, { userMetadata: { team } })).path);
  ({ path: external } = await trainer.saveWeightsExternal('export'));
  await using other = new ServiceClient();
  const second = await other.createLoraTrainingClient({ baseModel: 'tinker-rx/small', rank: 1 });
  paths.unshift((await second.saveWeightsForSampler('s')).path, external);
  rest = new RestClient();
});
afterAll(async () => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
  await rest.close();
  await local.close();
});

describe('searchCheckpoints', () => {
  const found = async (search: Parameters<RestClient['searchCheckpoints']>[0]) =>
    (await rest.searchCheckpoints(search)).checkpoints.map(({ tinkerPath }) => tinkerPath);

  it('narrows by type, project, metadata, owner and base model, newest first', async () => {
    const [sampler, exported, three, two, one] = paths;
    expect(await found({})).toStrictEqual([sampler, exported, three, two, one]);
    expect(await found({ checkpointType: 'training' })).toStrictEqual([three, two, one]);
    expect(await found({ userMetadata: { team: 'a' } })).toStrictEqual([three, one]);
    expect(await found({ projectIds: ['apples'] })).toStrictEqual([exported, three, two, one]);
    expect(await found({ baseModels: ['tinker-rx/small'] })).toStrictEqual([sampler]);
    expect(await found({ baseModels: [] })).toStrictEqual([]);
    expect(await found({ owner: { type: 'user', ownerUrns: ['tml:organization_user:else'] } })).toStrictEqual([]);
    const { checkpoints } = await rest.searchCheckpoints({ limit: 1 });
    expect(checkpoints[0]!.baseModel).toBe('tinker-rx/small');
  });

  it('goes page by page with the cursor given back', async () => {
    const pages: string[][] = [];
    let cursor: Awaited<ReturnType<RestClient['searchCheckpoints']>>['nextCursor'];
    do {
      const page = await rest.searchCheckpoints({ limit: 2, ...(cursor === undefined ? {} : { cursor }) });
      pages.push(page.checkpoints.map(({ tinkerPath }) => tinkerPath));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(pages.map(({ length }) => length)).toStrictEqual([2, 2, 1]);
    expect(pages.flat()).toStrictEqual(paths);
  });

  it('refuses a page of 0 or 201, and a project that the caller cannot list', async () => {
    await expect(rest.searchCheckpoints({ limit: 0 })).rejects.toThrow('an integer from 1 to 200');
    await expect(rest.searchCheckpoints({ limit: 201 })).rejects.toThrow('an integer from 1 to 200');
    await expect(found({ projectIds: ['apples', 'pears'] })).rejects.toMatchObject({ status: 403 });
  });

  it('is a command', async () => {
    const { stdout, code } = await run(['checkpoint', 'search', '--type', 'training', '--metadata', 'team=a']);
    expect(code).toBe(0);
    expect(stdout).toContain('2 checkpoints');
    expect(stdout).toContain(MODEL);
  });
});

describe('an upload', () => {
  const download = async (path: string): Promise<Record<string, Buffer>> => {
    const { urls } = await rest.getExternalWeightsUrls(path);
    const files = Object.entries(urls).map(async ([name, url]) => [name, await bytes(url)] as const);
    return Object.fromEntries(await Promise.all(files));
  };
  const bytes = async (url: string) => Buffer.from(await (await fetch(url)).arrayBuffer());
  const put = (url: string, body: string | Buffer) => fetch(url, { method: 'PUT', body });
  const begin = (loraConfig: Parameters<RestClient['externalWeightsUploadStart']>[0]['loraConfig']) =>
    rest.externalWeightsUploadStart({ baseModel: MODEL, loraConfig });
  const finish = async (files: Record<string, string | Buffer>, rank = 4) => {
    const { uploadId, urls } = await begin({ rank, trainUnembed: false });
    for (const [name, content] of Object.entries(files)) expect((await put(urls[name]!, content)).status).toBe(204);
    return rest.externalWeightsUploadFinish(uploadId);
  };

  it('of the files of an export is a checkpoint with the same files', async () => {
    const files = await download(external);
    const path = await finish(files);
    expect(path).toMatch(/^tinker:\/\/.+\/external_weights\//);
    expect(await download(path)).toStrictEqual(files);
    expect(await rest.getWeightsInfoByTinkerPath(path)).toMatchObject({
      ...{ baseModel: MODEL, loraRank: 4, trainUnembed: false },
    });
  });

  it('needs every file, as the service itself writes it for these options', async () => {
    const files = await download(external);
    await expect(finish({ [CONFIG]: files[CONFIG]! })).rejects.toThrow(`not uploaded yet: ${WEIGHTS}`);
    await expect(finish(files, 8)).rejects.toThrow(/has shape \[.*4.*\] for .*expected shape \[.*8.*\]/);
    await expect(finish({ ...files, [WEIGHTS]: 'no tensors' })).rejects.toThrow(`${WEIGHTS} cannot be read`);
    await expect(finish({ ...files, [CONFIG]: '{"r": 5}' })).rejects.toThrow('adapter_config.json: peft_type must be');
  });

  it('takes no file without a signature, nor through an address for reading, nor after the end', async () => {
    const { uploadId, urls } = await begin({ rank: 4, trainUnembed: false });
    const another = (_: string, first: string) => `signature=${first === 'A' ? 'B' : 'A'}`;
    expect((await put(urls[CONFIG]!.replace(/signature=(.)/, another), '{}')).status).toBe(401);
    const { urls: reading } = await rest.getExternalWeightsUrls(external);
    expect((await put(reading[CONFIG]!, '{}')).status).toBe(403);
    expect((await fetch(urls[CONFIG]!)).status).toBe(403);
    for (const [name, content] of Object.entries(await download(external))) await put(urls[name]!, content);
    await rest.externalWeightsUploadFinish(uploadId);
    expect((await put(urls[CONFIG]!, '{}')).status).toBe(404);
    await expect(rest.externalWeightsUploadFinish(uploadId)).rejects.toMatchObject({ status: 404 });
  });

  it('is a command, over the folder of a download', async () => {
    for (const [name, content] of Object.entries(await download(external))) writeFileSync(join(folder, name), content);
    const { stdout, code } = await run(['checkpoint', 'upload', folder, '--format', 'json']);
    expect(code).toBe(0);
    const { checkpoint_path: path } = JSON.parse(stdout) as { checkpoint_path: string };
    expect((await download(path))[WEIGHTS]).toStrictEqual(readFileSync(join(folder, WEIGHTS)));
    const missing = await run(['checkpoint', 'upload', join(folder, 'none')]);
    expect(missing.code).toBe(1);
    expect(missing.stderr).toContain('cannot be read');
  });
});
