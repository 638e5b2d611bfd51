import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fetchFile } from '../../../src/cli/checkpoint/files/fetchFile.js';
import { safeTarget } from '../../../src/cli/checkpoint/files/safeTarget.js';
import { verifyFile } from '../../../src/cli/checkpoint/files/verifyFile.js';
import { withHttp } from '../../../src/cli/http.js';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'tinker-rx-cli-'))));
afterEach(() => rmSync(folder, { recursive: true }));

describe('safeTarget', () => {
  it.each(['adapter_model.safetensors', 'a/b/c.json', './a', '..a', 'a..b'])('takes %s', (name) => {
    expect(safeTarget(folder, name).startsWith(`${folder}/`)).toBe(true);
  });
  it.each([
    '../x',
    'a/../../x',
    '/etc/passwd',
    '',
    '.',
    '..',
    'a/..',
    'a\\..\\..\\x',
    'C:evil',
    'C:/evil',
    'a\0b',
    'a\u001b[31mb',
    'a\nb',
    'a\u202eb',
  ])('refuses %j', (name) => expect(() => safeTarget(folder, name)).toThrow('Unsafe file path in checkpoint'));
  it('refuses to follow a link out of the folder', () => {
    symlinkSync(tmpdir(), join(folder, 'link'));
    expect(() => safeTarget(folder, 'link/x')).toThrow('Unsafe');
    expect(() => safeTarget(folder, 'link')).toThrow('Unsafe');
  });
});

describe('fetchFile', () => {
  const BYTES = Buffer.from(Array.from({ length: 100_000 }, (_, place) => (place * 7) % 251));
  let server: Server;
  let answers: ((request: IncomingMessage, response: ServerResponse) => void)[];
  let seen: IncomingMessage[];
  beforeEach(async () => {
    [answers, seen] = [[], []];
    server = createServer((request, response) => {
      seen.push(request);
      answers.shift()!(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterEach(() => new Promise((resolve) => server.close(resolve)));

  it.runIf(existsSync('/dev/full'))('names the file where the disk is full, and does not try again', async () => {
    answers = [whole()];
    mkdirSync(join(folder, 'sub'));
    symlinkSync('/dev/full', join(folder, 'sub', 'file.bin'));
    await expect(fetch()).rejects.toThrow(`${join(folder, 'sub', 'file.bin')}: no space left on the device`);
    expect(seen).toHaveLength(1);
  });

  const whole = (etag?: string) => (_: IncomingMessage, response: ServerResponse) =>
    response.writeHead(200, { 'content-length': BYTES.length, ...(etag === undefined ? {} : { etag }) }).end(BYTES);
  const cut = (etag?: string) => (_: IncomingMessage, response: ServerResponse) => {
    response.writeHead(200, { 'content-length': BYTES.length, ...(etag === undefined ? {} : { etag }) });
    response.write(BYTES.subarray(0, 40_000), () => setTimeout(() => response.destroy(), 50));
  };
  const rest = (request: IncomingMessage, response: ServerResponse) => {
    const from = Number(/bytes=(\d+)-/.exec(request.headers.range!)![1]);
    response.writeHead(206, {
      'content-length': BYTES.length - from,
      'content-range': `bytes ${from}-${BYTES.length - 1}/${BYTES.length}`,
      etag: String(request.headers['if-range']),
    });
    response.end(BYTES.subarray(from));
  };
  const fetch = async (etag?: string) => {
    const target = join(folder, 'sub', 'file.bin');
    const progress: number[] = [];
    const tags: string[] = [];
    const url = () => Promise.resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    await withHttp((http) =>
      fetchFile(http, {
        url,
        target,
        signal: new AbortController().signal,
        etag,
        onEtag: (tag) => tags.push(tag),
        onProgress: (bytes) => progress.push(bytes),
      }),
    );
    return { content: readFileSync(target), progress, tags };
  };

  it('fetches a file and tells how far it is', async () => {
    answers = [whole('"v1"')];
    const { content, progress, tags } = await fetch();
    expect(content.equals(BYTES)).toBe(true);
    expect(progress.at(-1)).toBe(BYTES.length);
    expect(tags).toStrictEqual(['"v1"']);
    expect(seen[0]!.headers['range']).toBeUndefined();
  });

  it('goes on where a connection broke off, if the file is still the same', async () => {
    answers = [cut('"v1"'), rest];
    expect((await fetch()).content.equals(BYTES)).toBe(true);
    expect(seen[1]!.headers['range']).toMatch(/^bytes=[1-9]\d*-$/);
    expect(seen[1]!.headers['if-range']).toBe('"v1"');
  });

  it('starts anew where the file has changed, or nothing tells that it has not', async () => {
    answers = [cut('"v1"'), whole('"v2"')];
    expect((await fetch()).content.equals(BYTES)).toBe(true);
    for (const etag of [undefined, 'W/"weak"']) {
      [answers, seen] = [[cut(etag), whole()], []];
      expect((await fetch()).content.equals(BYTES)).toBe(true);
      expect(seen[1]!.headers['range']).toBeUndefined();
    }
  });

  it('goes on with what an earlier command left, and asks for nothing where all is there', async () => {
    answers = [whole('"v1"')];
    await fetch();
    const target = join(folder, 'sub', 'file.bin');
    writeFileSync(target, BYTES.subarray(0, 99_999));
    answers = [rest];
    expect((await fetch('"v1"')).content.equals(BYTES)).toBe(true);
    expect(seen.at(-1)!.headers['range']).toBe('bytes=99999-');
    answers = [(_, response) => response.writeHead(416, { 'content-range': `bytes */${BYTES.length}` }).end()];
    expect((await fetch('"v1"')).progress).toStrictEqual([BYTES.length]);
  });

  it('waits for a slow disk without a MaxListenersExceededWarning', async () => {
    const large = Buffer.alloc(4 * 1024 * 1024, 1);
    const warnings: Error[] = [];
    const warn = (warning: Error) => warnings.push(warning);
    process.on('warning', warn);
    answers = [(_, response) => response.writeHead(200, { 'content-length': large.length }).end(large)];
    const { content } = await fetch();
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', warn);
    expect(content.equals(large)).toBe(true);
    expect(warnings).toStrictEqual([]);
  });

  it('tries again after a passing failure and not after another', async () => {
    answers = [(_, response) => response.writeHead(503).end('busy'), whole()];
    expect((await fetch()).content.equals(BYTES)).toBe(true);
    answers = [(_, response) => response.writeHead(403).end('this URL has expired')];
    await expect(fetch()).rejects.toThrow('Failed to download: HTTP 403: this URL has expired');
  });
});

describe('verifyFile', () => {
  const write = (name: string, bytes: Buffer) => {
    const path = join(folder, name);
    writeFileSync(path, bytes);
    return path;
  };
  const safetensors = (tensorBytes: number) => {
    const header = Buffer.from(JSON.stringify({ a: { dtype: 'U8', shape: [4], data_offsets: [0, 4] } }));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.length));
    return Buffer.concat([length, header, Buffer.alloc(tensorBytes)]);
  };
  const none = new Map<string, string>();

  it('takes whole files', async () => {
    await verifyFile(write('a.safetensors', safetensors(4)), 'a.safetensors', none);
    await verifyFile(write('a.json', Buffer.from('{}')), 'a.json', none);
  });

  it('takes a file of 300,000 tensors', async () => {
    const places = Array.from({ length: 300_000 }, (_, index) => [`t${index}`, { data_offsets: [index, index + 1] }]);
    const header = Buffer.from(JSON.stringify(Object.fromEntries(places)));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.length));
    const whole = Buffer.concat([length, header, Buffer.alloc(300_000)]);
    await expect(verifyFile(write('many.safetensors', whole), 'many.safetensors', none)).resolves.toBeUndefined();
  });
  it.each([
    ['cut.safetensors', safetensors(3), 'bytes instead of'],
    ['long.safetensors', safetensors(5), 'bytes instead of'],
    ['short.safetensors', safetensors(4).subarray(0, 20), 'cut off'],
    [
      'odd.safetensors',
      Buffer.concat([Buffer.from([2, 0, 0, 0, 0, 0, 0, 0]), Buffer.from('no')]),
      'header is not JSON',
    ],
    ['bad.json', Buffer.from('{"a":'), 'is not valid JSON'],
  ])('refuses %s', async (name, bytes, reason) => {
    await expect(verifyFile(write(name, bytes), name, none)).rejects.toThrow(reason);
  });
  it('compares the checksums that stores send', async () => {
    const bytes = Buffer.from('weights');
    const path = write('x.bin', bytes);
    const digest = (algorithm: string) => createHash(algorithm).update(bytes).digest('base64');
    await verifyFile(path, 'x.bin', new Map([['x-goog-hash', `crc32c=AAAAAA==, md5=${digest('md5')}`]]));
    await verifyFile(path, 'x.bin', new Map([['x-amz-checksum-sha256', digest('sha256')]]));
    writeFileSync(path, 'weightz');
    const headers = new Map([['content-md5', digest('md5')]]);
    await expect(verifyFile(path, 'x.bin', headers)).rejects.toThrow('md5 checksum');
    expect(existsSync(path)).toBe(true);
  });
});
