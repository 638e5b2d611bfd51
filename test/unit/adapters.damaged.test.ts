import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { exportPeft } from 'tinker-rx/adapters';

let adapter: string;
beforeEach(() => {
  adapter = mkdtempSync(join(tmpdir(), 'tinker-rx-damaged-'));
  writeFileSync(join(adapter, 'adapter_config.json'), JSON.stringify({ r: 4, lora_alpha: 8 }));
});
afterEach(() => rmSync(adapter, { recursive: true, force: true }));

/** A header that promises four bytes of a tensor. */
const promising = () => {
  const header = Buffer.from(JSON.stringify({ x: { dtype: 'F32', shape: [1], data_offsets: [0, 4] } }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, header]);
};

describe('weights of an adapter that are damaged', () => {
  it.each([
    ['are empty', Buffer.alloc(0), 'it is shorter than its header'],
    [
      'hold no JSON',
      Buffer.concat([Buffer.from([2, 0, 0, 0, 0, 0, 0, 0]), Buffer.from('no')]),
      'its header is not JSON',
    ],
    ['are cut off', promising(), 'x ends at byte'],
  ])('that %s are a ValidationError that names the file and what to do', async (_, bytes, why) => {
    const file = join(adapter, 'adapter_model.safetensors');
    writeFileSync(file, bytes);
    const failing = exportPeft({ adapter, output: join(adapter, 'out'), base: 'tinker-rx/tiny', server: 'peft' });
    const error = (await failing.catch((caught: unknown) => caught)) as Error & { readonly code: string };
    expect(error.code).toBe('invalid_input');
    for (const part of [file, why, 'Download it again']) expect(error.message).toContain(part);
  });
});
