import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { RestClient } from 'tinker-rx';
import { fetchCheckpoint } from '../../../src/cli/checkpoint/files/fetchCheckpoint.js';
import { contextOf } from './terminal.js';

const BODY = 'the bytes of a file';
let parent: string;
let folder: string;
let server: Server;
let origin: string;
let seen: IncomingMessage[];
let signed: number;
beforeEach(async () => {
  parent = mkdtempSync(join(tmpdir(), 'tinker-rx-fetch-'));
  folder = join(parent, 'checkpoint');
  [seen, signed] = [[], 0];
  server = createServer((request, response) => {
    seen.push(request);
    const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    if (request.url!.includes('broken')) return response.writeHead(403).end('gone');
    response.writeHead(from > 0 ? 206 : 200, { etag: '"v1"', 'content-length': BODY.length - from });
    response.end(BODY.slice(from));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  rmSync(parent, { recursive: true });
  await new Promise((resolve) => server.close(resolve));
});

/** A service with these files, whose addresses are good for so long. */
const service = (names: readonly string[], goodForMs = 3_600_000) =>
  ({
    getExternalWeightsUrls: () =>
      Promise.resolve({
        urls: Object.fromEntries(names.map((name) => [name, `${origin}/${++signed}/${encodeURIComponent(name)}`])),
        expires: new Date(Date.now() + goodForMs).toISOString(),
      }),
  }) as unknown as RestClient;
const fetchAll = (rest: RestClient, columns?: number) => {
  const { context, written } = contextOf(columns === undefined ? {} : { columns });
  const signal = new AbortController().signal;
  return fetchCheckpoint(context, rest, { path: 'tinker://run/external_weights/x', folder, signal }).then((bytes) => ({
    bytes,
    written,
  }));
};

it('fetches every file, and shows the folder when all are there', async () => {
  const { bytes, written } = await fetchAll(service(['b.bin', 'a/c.bin']), 80);
  expect(bytes).toBe(2 * BODY.length);
  expect(readFileSync(join(folder, 'a', 'c.bin'), 'utf8')).toBe(BODY);
  expect(readdirSync(folder).sort()).toStrictEqual(['a', 'b.bin']);
  expect(existsSync(`${folder}.partial`)).toBe(false);
  expect(written.stderr).toMatch(/\rb\.bin {2}█{24} {2}100 % {2}19 B of 19 B/);
});

it.each(['../evil', '/tmp/evil', 'a/../../evil', 'x\\..\\evil'])('writes nothing where a name is %s', async (name) => {
  await expect(fetchAll(service(['fine.bin', name]))).rejects.toThrow('Unsafe file path in checkpoint');
  expect(seen).toStrictEqual([]);
  expect(readdirSync(parent)).toStrictEqual(['checkpoint.partial']);
  expect(readdirSync(`${folder}.partial`)).toStrictEqual([]);
});

it('writes nothing through a link in place of the folder for parts', async () => {
  mkdirSync(join(parent, 'elsewhere'));
  symlinkSync(join(parent, 'elsewhere'), `${folder}.partial`);
  await expect(fetchAll(service(['a.bin']))).rejects.toThrow('checkpoint.partial is a link');
  expect(readdirSync(join(parent, 'elsewhere'))).toStrictEqual([]);
});

it('leaves what is there for the next command, which goes on with it', async () => {
  await expect(fetchAll(service(['a.bin', 'broken.bin']))).rejects.toThrow('HTTP 403');
  expect(existsSync(folder)).toBe(false);
  writeFileSync(join(`${folder}.partial`, 'a.bin'), BODY.slice(0, 4));
  seen = [];
  await fetchAll(service(['a.bin']));
  expect(seen[0]!.headers.range).toBe('bytes=4-');
  expect(seen[0]!.headers['if-range']).toBe('"v1"');
  expect(readFileSync(join(folder, 'a.bin'), 'utf8')).toBe(BODY);
});

it('fetches anew what it does not know the version of', async () => {
  mkdirSync(`${folder}.partial`);
  writeFileSync(join(`${folder}.partial`, 'a.bin'), 'something else');
  await fetchAll(service(['a.bin']));
  expect(seen[0]!.headers.range).toBeUndefined();
  expect(readFileSync(join(folder, 'a.bin'), 'utf8')).toBe(BODY);
});

it('has addresses signed again before they expire', async () => {
  await fetchAll(service(['a.bin', 'b.bin'], 60_000));
  expect(seen.map(({ url }) => url)).toStrictEqual(['/3/a.bin', '/6/b.bin']);
});

it('does not take a broken file for a whole one', async () => {
  await expect(fetchAll(service(['a.json']))).rejects.toThrow('a.json is broken: it is not valid JSON');
  expect(existsSync(join(`${folder}.partial`, 'a.json'))).toBe(false);
  expect(existsSync(folder)).toBe(false);
});
