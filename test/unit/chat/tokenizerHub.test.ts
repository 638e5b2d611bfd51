import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { lastValueFrom, toArray } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HubSettings } from '../../../src/chat/tokenizer/hub/HubSettings.js';
import {
  downloadHubFile,
  hubFile,
  loadTokenizer,
  tokenizerFromHub,
  type HubEvent,
  type HubOptions,
} from '../../../src/chat/tokenizer/index.js';
import { COMMIT, etagOf, fail, HubServer, send, type HubFile } from './tokenizerHubServer.js';

const SMALL = new URL('../../parity/recorded/tokenizers/small/', import.meta.url).pathname;
const text = (content: string): HubFile => ({ content: Buffer.from(content) });
const large: HubFile = { content: Buffer.alloc(300_000, 'tokenizer '), isLarge: true };

let hub: HubServer;
let home: string;
let folder: string;
let options: HubOptions;

beforeEach(async () => {
  hub = await HubServer.start({ 'tokenizer.json': large, 'tokenizer_config.json': text('{"eos_token":"<|im_end|>"}') });
  home = await mkdtemp(join(tmpdir(), 'tinker-rx-hub-'));
  folder = join(home, 'hub', 'models--org--name');
  options = { env: { HF_ENDPOINT: `${hub.url}/`, HF_HOME: home }, retryDelayMs: 1 };
});

afterEach(async () => {
  await hub[Symbol.asyncDispose]();
  await rm(home, { recursive: true, force: true });
});

describe('a file from the hub', () => {
  it('goes into the cache that all Hugging Face tools share', async () => {
    const path = await hubFile('org/name', 'tokenizer.json', options);
    expect(path).toBe(join(folder, 'snapshots', COMMIT, 'tokenizer.json'));
    expect(await readlink(path!)).toBe(join('..', '..', 'blobs', etagOf(large)));
    expect(large.content.equals(await readFile(path!))).toBe(true);
    expect(await readFile(join(folder, 'refs', 'main'), 'utf8')).toBe(COMMIT);
    expect(await readdir(join(folder, 'blobs'))).toEqual([etagOf(large)]);
  });

  it('that does not exist is remembered as such', async () => {
    expect(await hubFile('org/name', 'chat_template.jinja', options)).toBeUndefined();
    expect(existsSync(join(folder, '.no_exist', COMMIT, 'chat_template.jinja'))).toBe(true);
    expect(await hubFile('org/name', 'chat_template.jinja', { ...options, offline: true })).toBeUndefined();
  });

  it('is looked up but not fetched again', async () => {
    await hubFile('org/name', 'tokenizer.json', options);
    await hubFile('org/name', 'tokenizer.json', options);
    expect(hub.requests('HEAD')).toHaveLength(2);
    expect(hub.requests('GET')).toHaveLength(1);
  });

  it('of a pinned commit is not even looked up again', async () => {
    await hubFile('org/name', 'tokenizer.json', { ...options, revision: COMMIT });
    await hubFile('org/name', 'tokenizer.json', { ...options, revision: COMMIT });
    expect(hub.seen).toHaveLength(2);
  });

  it('comes from the cache offline, without a request', async () => {
    await hubFile('org/name', 'tokenizer.json', options);
    const before = hub.seen.length;
    const env = { ...options.env, HF_HUB_OFFLINE: 'yes' };
    expect(await hubFile('org/name', 'tokenizer.json', { ...options, env })).toBe(
      join(folder, 'snapshots', COMMIT, 'tokenizer.json'),
    );
    await expect(hubFile('org/name', 'other.json', { ...options, env })).rejects.toThrow(
      /HF_HUB_OFFLINE forbids fetching it/,
    );
    expect(hub.seen).toHaveLength(before);
  });

  it('comes from the cache when the hub is down', async () => {
    await hubFile('org/name', 'tokenizer.json', options);
    await hub[Symbol.asyncDispose]();
    expect(await hubFile('org/name', 'tokenizer.json', options)).toBe(
      join(folder, 'snapshots', COMMIT, 'tokenizer.json'),
    );
    await expect(hubFile('org/name', 'other.json', { ...options, retries: 0 })).rejects.toMatchObject({
      code: 'tokenizer',
      retryable: true,
      message: expect.stringMatching(/^cannot reach http:\/\/127\.0\.0\.1:\d+ .*: set HF_ENDPOINT/) as string,
    });
  });

  it('reports its progress and then where it is', async () => {
    const events = await lastValueFrom(downloadHubFile('org/name', 'tokenizer.json', options).pipe(toArray()));
    const received = events.flatMap((event) => (event.type === 'file-progress' ? [event.receivedBytes] : []));
    expect(received).toEqual([...received].sort((a, b) => a - b));
    expect(received.at(0)).toBe(0);
    expect(received.at(-1)).toBe(large.content.length);
    expect(events.at(-1)).toMatchObject({
      type: 'file-ready',
      repo: 'org/name',
      file: 'tokenizer.json',
      cached: false,
    });
    const called: HubEvent[] = [];
    await hubFile('org/name', 'tokenizer.json', { ...options, onProgress: (event) => called.push(event) });
    expect(called).toMatchObject([{ type: 'file-ready', cached: true }]);
  });
});

describe('a download', () => {
  it('that breaks off goes on where it stopped', async () => {
    let isFirst = true;
    hub.intercept = (request, response) => {
      if (request.method !== 'GET' || !isFirst) return false;
      isFirst = false;
      response.writeHead(200, { 'content-length': large.content.length });
      response.write(large.content.subarray(0, 100_000), () => setTimeout(() => response.destroy(), 50));
      return true;
    };
    const path = await hubFile('org/name', 'tokenizer.json', options);
    expect(large.content.equals(await readFile(path!))).toBe(true);
    expect(hub.seen.map(({ range }) => range)).toEqual([undefined, undefined, undefined, 'bytes=100000-']);
    expect(await readdir(join(folder, 'blobs'))).toEqual([etagOf(large)]);
  });

  it('starts over where the server knows no ranges', async () => {
    await mkdir(join(folder, 'blobs'), { recursive: true });
    await writeFile(join(folder, 'blobs', `${etagOf(large)}.incomplete`), large.content.subarray(0, 5));
    hub.intercept = (request, response) => {
      if (request.method === 'GET') send(response, large, 'GET');
      return request.method === 'GET';
    };
    expect(large.content.equals(await readFile((await hubFile('org/name', 'tokenizer.json', options))!))).toBe(true);
  });

  it('starts over where the part at hand is not a part of it', async () => {
    await mkdir(join(folder, 'blobs'), { recursive: true });
    await writeFile(join(folder, 'blobs', `${etagOf(large)}.incomplete`), 'garbage');
    expect(large.content.equals(await readFile((await hubFile('org/name', 'tokenizer.json', options))!))).toBe(true);
    expect(hub.seen.map(({ range }) => range)).toEqual([undefined, 'bytes=7-', undefined]);
    expect(await readdir(join(folder, 'blobs'))).toEqual([etagOf(large)]);
  });

  it.each(['tokenizer.json', 'tokenizer_config.json'])(
    'with wrong bytes is refused and leaves nothing (%s)',
    async (name) => {
      hub.intercept = (request, response) => {
        if (request.method === 'GET') response.end(Buffer.alloc(hub.files.get(name)!.content.length));
        return request.method === 'GET';
      };
      await expect(hubFile('org/name', name, { ...options, retries: 1 })).rejects.toThrow(
        /does not match its checksum/,
      );
      expect(hub.requests('GET')).toHaveLength(2);
      expect(await readdir(join(folder, 'blobs'))).toEqual([]);
      expect(existsSync(join(folder, 'snapshots'))).toBe(false);
    },
  );

  it('stops when nobody waits for it, and goes on from there', async () => {
    hub.intercept = (request, response) => {
      if (request.method !== 'GET') return false;
      response.writeHead(200, { 'content-length': large.content.length });
      response.write(large.content.subarray(0, 50_000));
      return true;
    };
    await new Promise<void>((resolve) => {
      const download = downloadHubFile('org/name', 'tokenizer.json', options).subscribe((event) => {
        if (event.type !== 'file-progress' || event.receivedBytes < 50_000) return;
        download.unsubscribe();
        resolve();
      });
    });
    expect(await hub.seen[1]!.finished).toBe(false);
    hub.intercept = () => false;
    expect(large.content.equals(await readFile((await hubFile('org/name', 'tokenizer.json', options))!))).toBe(true);
    expect(hub.seen.at(-1)?.range).toBe('bytes=50000-');
  });

  it('is tried again when the hub is busy, and only then', async () => {
    let failures = 2;
    hub.intercept = (_request, response) => {
      if (failures-- > 0) response.writeHead(503).end();
      return failures >= 0;
    };
    expect(await hubFile('org/name', 'tokenizer.json', options)).toBeDefined();
    expect(hub.requests('HEAD')).toHaveLength(3);
    await expect(hubFile('org/other', 'tokenizer.json', options)).rejects.toThrow(/org\/other is not at/);
    expect(hub.requests('HEAD')).toHaveLength(4);
  });
});

describe('redirects', () => {
  it('to the storage get no token', async () => {
    await using storage = await HubServer.start({});
    storage.intercept = (request, response) => {
      send(response, large, request.method ?? '', request.headers.range);
      return true;
    };
    hub.intercept = (_request, response) => {
      const headers = {
        'x-repo-commit': COMMIT,
        'x-linked-etag': `"${etagOf(large)}"`,
        'x-linked-size': large.content.length,
      };
      response.writeHead(302, { ...headers, location: `${storage.url}/blob?signed=1` }).end();
      return true;
    };
    const path = await hubFile('org/name', 'tokenizer.json', { ...options, token: 'hf_secret' });
    expect(large.content.equals(await readFile(path!))).toBe(true);
    expect(hub.seen.map(({ authorization }) => authorization)).toEqual(['Bearer hf_secret']);
    expect(storage.seen).toMatchObject([{ method: 'GET', url: '/blob?signed=1', authorization: undefined }]);
  });

  it('of a renamed repository are followed with it', async () => {
    const rename = (url: string | undefined) => url?.replace('/old/name/', '/org/name/');
    hub.intercept = (request, response) => {
      if (!request.url?.startsWith('/old/')) return false;
      response.writeHead(307, { location: rename(request.url)! }).end();
      return true;
    };
    expect(await hubFile('old/name', 'tokenizer.json', { ...options, token: 'hf_secret' })).toBeDefined();
    expect(hub.seen.every(({ authorization }) => authorization === 'Bearer hf_secret')).toBe(true);
  });
});

describe('a refusal says what to do', () => {
  it.each([
    [403, 'GatedRepo', /org\/name is gated: accept its terms at http.*\/org\/name and set HF_TOKEN/],
    [401, 'RepoNotFound', /org\/name is not at http.*, or it is private: check the name, and set HF_TOKEN/],
    [404, 'RevisionNotFound', /org\/name has no revision main/],
  ])('%i %s', async (status, code, message) => {
    hub.intercept = (_request, response) => {
      fail(response, status, code);
      return true;
    };
    await expect(hubFile('org/name', 'tokenizer.json', options)).rejects.toThrow(message);
    expect(hub.seen).toHaveLength(1);
  });

  it('also where the endpoint is no hub', async () => {
    hub.intercept = (_request, response) => {
      response.end('hello');
      return true;
    };
    await expect(hubFile('org/name', 'tokenizer.json', options)).rejects.toThrow(/is HF_ENDPOINT right\?/);
  });
});

describe('settings', () => {
  it('take the environment of the Python library', async () => {
    const { endpoint, cacheFolder, offline } = new HubSettings({ env: { XDG_CACHE_HOME: '/x' } });
    expect({ endpoint, cacheFolder, offline }).toEqual({
      endpoint: 'https://huggingface.co',
      cacheFolder: join('/x', 'huggingface', 'hub'),
      offline: false,
    });
    expect(new HubSettings({ env: { HF_HOME: '/h', HF_HUB_CACHE: '/c' } }).cacheFolder).toBe('/c');
    expect(new HubSettings({ env: { HF_HUB_OFFLINE: '0' } }).offline).toBe(false);
    await writeFile(join(home, 'token'), 'hf_stored\n');
    const authorization = (more: HubOptions) =>
      new HubSettings({ ...options, ...more }).headersFor(`${hub.url}/x`)['authorization'];
    expect(authorization({})).toBe('Bearer hf_stored');
    expect(authorization({ env: { ...options.env, HF_TOKEN: 'hf_env' } })).toBe('Bearer hf_env');
    expect(authorization({ token: 'hf_given' })).toBe('Bearer hf_given');
    expect(authorization({ token: false })).toBeUndefined();
    expect(authorization({ env: { ...options.env, HF_HUB_DISABLE_IMPLICIT_TOKEN: '1' } })).toBeUndefined();
  });

  it('do not show the token', () => {
    const settings = new HubSettings({ env: {}, token: 'hf_secret' });
    expect(inspect(settings, { showHidden: true, depth: 9 }) + JSON.stringify(settings)).not.toContain('hf_secret');
  });
});

describe('a tokenizer from the hub', () => {
  const put = async (kind: string, files: readonly string[]): Promise<void> => {
    hub.files.clear();
    for (const file of files) hub.files.set(file, { content: await readFile(join(SMALL, kind, file)), isLarge: true });
  };

  it('is made of its files, and called by its repository', async () => {
    await put('byte-level', ['tokenizer.json', 'tokenizer_config.json']);
    hub.files.set('chat_template.jinja', text('the template'));
    const tokenizer = await tokenizerFromHub('org/name', options);
    expect(tokenizer.id).toBe('org/name');
    expect(tokenizer.chatTemplate).toBe('the template');
    expect(tokenizer.decode(tokenizer.encode('hello'))).toBe('hello');
  });

  it('may be a rank file', async () => {
    await put('tiktoken', ['tiktoken.model', 'tokenizer_config.json']);
    const tokenizer = await tokenizerFromHub('org/name', options);
    expect(tokenizer.eosTokenId).toBe(tokenizer.tokenId('[EOS]'));
  });

  it('that has none is an error that says how to get one', async () => {
    hub.files.delete('tokenizer.json');
    await expect(tokenizerFromHub('org/name', options)).rejects.toThrow(
      /org\/name has neither tokenizer.json nor tiktoken.model/,
    );
  });

  it('is kept, and asked for again after a failure', async () => {
    hub.files.clear();
    const settings = { ...options, endpoint: hub.url };
    await expect(loadTokenizer('org/name', settings)).rejects.toThrow(/has neither/);
    await put('byte-level', ['tokenizer.json']);
    const tokenizer = await loadTokenizer('org/name', settings);
    const before = hub.seen.length;
    expect(await loadTokenizer('org/name', settings)).toBe(tokenizer);
    expect(hub.seen).toHaveLength(before);
  });

  it('of Kimi is looked up at the revision that the service pins', async () => {
    await expect(tokenizerFromHub('moonshotai/Kimi-K2.6', options)).rejects.toThrow(/moonshotai\/Kimi-K2.6 is not at/);
    expect(hub.seen[0]?.url).toBe(
      '/moonshotai/Kimi-K2.6/resolve/b5aabbfb20227ed42becbf5541dbffd213942c58/tokenizer.json',
    );
  });
});

describe('a malicious hub', () => {
  // Out of snapshots/, the repository and hub/, still within the folder that is removed afterwards.
  const evil = '../../../escaped';

  it.each([
    ['commit', { 'x-repo-commit': evil, etag: '"0123"' }, 200],
    ['commit of an absent file', { 'x-repo-commit': evil, 'x-error-code': 'EntryNotFound' }, 404],
    ['checksum', { 'x-repo-commit': COMMIT, etag: '".."' }, 200],
    ['checksum with folders', { 'x-repo-commit': COMMIT, etag: `"${evil}"` }, 200],
  ] as const)('writes nothing outside the cache by its %s', async (_, headers, status) => {
    hub.intercept = (_request, response) => {
      response.writeHead(status, headers).end('{}');
      return true;
    };
    await expect(hubFile('org/name', 'tokenizer.json', options)).rejects.toThrow(
      'does not answer like a Hugging Face hub',
    );
    expect(await readdir(home, { recursive: true })).toEqual([]);
  });

  it('writes nothing outside the cache by the name of a revision', async () => {
    await expect(hubFile('org/name', 'tokenizer.json', { ...options, revision: evil })).rejects.toThrow(
      'is not the name of a revision',
    );
  });
});
