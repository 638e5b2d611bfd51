import { open, readFile } from 'node:fs/promises';
import { CliError } from '../../CliError.js';
import { fileDigest } from '../../fileDigest.js';

/** Checksums that stores send along, and how to compute them. */
const CHECKSUMS: readonly (readonly [header: string, pattern: RegExp, algorithm: string])[] = [
  ['repr-digest', /sha-256=:([A-Za-z0-9+/]{43}=):/, 'sha256'],
  ['x-amz-checksum-sha256', /^([A-Za-z0-9+/]{43}=)$/, 'sha256'],
  ['x-goog-hash', /md5=([A-Za-z0-9+/]{22}==)/, 'md5'],
  ['content-md5', /^([A-Za-z0-9+/]{22}==)$/, 'md5'],
];

/** @throws CliError if a file is not what the server said it is, or is no file of its kind. */
export async function verifyFile(path: string, name: string, headers: ReadonlyMap<string, string>): Promise<void> {
  for (const [header, pattern, algorithm] of CHECKSUMS) {
    const expected = pattern.exec(headers.get(header) ?? '')?.[1];
    if (expected !== undefined && (await fileDigest(path, algorithm, 'base64')) !== expected)
      throw new CliError(`${name}: the ${algorithm} checksum is not the one the server gave`);
  }
  if (name.endsWith('.safetensors')) await verifySafetensors(path, name);
  if (name.endsWith('.json')) await verifyJson(path, name);
}

/** A safetensors file tells how long it is: eight bytes, the header, and the tensors to their last byte. */
async function verifySafetensors(path: string, name: string): Promise<void> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const start = Buffer.alloc(8);
    await file.read(start, 0, 8, 0);
    const length = Number(start.readBigUInt64LE());
    if (size < 8 || length > size - 8) throw broken(name, 'it is cut off');
    const text = Buffer.alloc(length);
    await file.read(text, 0, length, 8);
    let ends: number[];
    try {
      const header = JSON.parse(text.toString('utf8')) as Record<string, { data_offsets?: [number, number] }>;
      ends = Object.values(header).map((tensor) => tensor.data_offsets?.[1] ?? 0);
    } catch {
      throw broken(name, 'its header is not JSON');
    }
    const expected = 8 + length + ends.reduce((most, end) => Math.max(most, end), 0);
    if (size !== expected) throw broken(name, `${size} bytes instead of ${expected}`);
  } finally {
    await file.close();
  }
}

async function verifyJson(path: string, name: string): Promise<void> {
  try {
    JSON.parse(await readFile(path, 'utf8'));
  } catch {
    throw broken(name, 'it is not valid JSON');
  }
}

const broken = (name: string, why: string) =>
  new CliError(`${name} is broken: ${why}`, { details: 'Try again; the part that is broken is fetched anew.' });
