/**
 * Adapters are written and merged as the public cookbook does it: byte for byte, or to the last bit of a sum. `recorded/adapters` is made by
 * record_adapters.py, which also loads what this package writes with peft and transformers and compares logits (logits.json).
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { decodeFloats } from '../../src/support/files/floats.js';
import { SafetensorsFile } from '../../src/support/files/safetensors.js';
import { writeSafetensors } from '../../src/support/files/writeSafetensors.js';
import { HubServer } from '../unit/chat/tokenizerHubServer.js';
import { run } from '../unit/cli/terminal.js';

const recorded = (...path: string[]) => fileURLToPath(new URL(join('recorded/adapters', ...path), import.meta.url));
const FAMILIES = ['dense', 'separate_experts', 'gpt_oss', 'qwen3_5_moe', 'nemotron'];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'adapters-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

interface Tensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Buffer;
}

async function tensorsOf(path: string): Promise<Record<string, Tensor>> {
  const file = await SafetensorsFile.open(path);
  const entries: [string, Tensor][] = [];
  for (const [name, { dtype, shape, start, end }] of file.header.tensors)
    entries.push([name, { dtype, shape, bytes: Buffer.from(await file.read(start, end - start)) }]);
  await file.close();
  return Object.fromEntries(entries);
}

const write = (path: string, tensors: readonly (readonly [string, Tensor])[]) =>
  writeSafetensors(
    path,
    tensors.map(([name, { dtype, shape, bytes }]) => ({
      name,
      dtype,
      shape,
      byteLength: bytes.length,
      bytes: async function* () {
        yield bytes;
      },
    })),
    undefined,
  );

const names = (tensors: object) => Object.keys(tensors).sort();

/** The adapter of a case without its output matrix, as one that vLLM serves. */
async function withoutUnembed(adapter: string): Promise<string> {
  const target = join(folder, 'adapter');
  const tensors = Object.entries(await tensorsOf(join(adapter, 'adapter_model.safetensors')));
  mkdirSync(target);
  writeFileSync(join(target, 'adapter_config.json'), readFileSync(join(adapter, 'adapter_config.json')));
  const kept = tensors.filter(([name]) => !name.includes('unembed'));
  await write(join(target, 'adapter_model.safetensors'), kept);
  return target;
}

describe.each(FAMILIES)('%s', (family) => {
  const base = ['--base', recorded(family, 'base')];

  it("is exported as the cookbook's adapter, bit for bit", async () => {
    const output = join(folder, 'out');
    const words = ['checkpoint', 'export', recorded(family, 'adapter'), '--peft', '--for', 'peft', ...base];
    const { code, stderr } = await run([...words, '-o', output]);
    expect({ code, stderr }).toStrictEqual({ code: 0, stderr: '' });
    const ours = await tensorsOf(join(output, 'adapter_model.safetensors'));
    const theirs = await tensorsOf(recorded(family, 'peft', 'adapter_model.safetensors'));
    expect(names(ours)).toStrictEqual(names(theirs));
    expect(ours).toStrictEqual(theirs);
    const config = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
    const { auto_mapping: _, ...expected } = config(recorded(family, 'peft', 'adapter_config.json'));
    expect(config(join(output, 'adapter_config.json'))).toMatchObject(expected);
  });

  it("is merged as the cookbook's, but for the rounding of a sum", async () => {
    const output = join(folder, 'out');
    const { code, stderr } = await run(['checkpoint', 'merge', recorded(family, 'adapter'), ...base, '-o', output]);
    expect({ code, stderr }).toStrictEqual({ code: 0, stderr: '' });
    const before = await tensorsOf(recorded(family, 'base', 'model.safetensors'));
    const ours = await tensorsOf(join(output, 'model.safetensors'));
    const theirs = await tensorsOf(recorded(family, 'merged.safetensors'));
    expect(names(ours)).toStrictEqual(names(theirs));
    const unequal: string[] = [];
    for (const [name, { dtype, shape, bytes }] of Object.entries(theirs)) {
      const mine = ours[name]!;
      expect({ dtype: mine.dtype, shape: mine.shape }).toStrictEqual({ dtype, shape });
      const [values, expected] = [mine.bytes, bytes].map((one) => decodeFloats(one, dtype, name)) as [
        Float32Array,
        Float32Array,
      ];
      const step = dtype === 'F32' ? 2 ** -22 : dtype === 'F16' ? 2 ** -10 : 2 ** -7;
      values.forEach((value, i) =>
        expect(Math.abs(value - expected[i]!)).toBeLessThanOrEqual(step * Math.max(0.1, Math.abs(expected[i]!))),
      );
      if (!mine.bytes.equals(before[name]!.bytes)) unequal.push(name);
    }
    // As many tensors have changed as the cookbook has changed.
    expect(unequal.sort()).toStrictEqual(
      names(theirs).filter((name) => !theirs[name]!.bytes.equals(before[name]!.bytes)),
    );
    expect(unequal.length).toBeGreaterThan(0);
  });
});

describe('what cannot be served', () => {
  it('is written with a warning where only a newer vLLM loads a trained output matrix, and says which', async () => {
    const output = join(folder, 'out');
    const words = ['checkpoint', 'export', recorded('dense', 'adapter'), '--base', recorded('dense', 'base')];
    const { code, stderr } = await run([...words, '-o', output]);
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('Warning: vLLM loads a trained output matrix of Qwen3 from version 0.16.0 on');
    expect(existsSync(`${output}.partial`)).toBe(false);
    expect(Object.keys(await tensorsOf(join(output, 'adapter_model.safetensors'))).join()).toContain('lm_head');
    const other = await run([...words, '--for', 'sglang', '--force', '-o', output]);
    expect([other.code, other.stderr]).toEqual([0, expect.not.stringContaining('output matrix') as string]);
  });

  it('is an adapter of DeepSeek V3', async () => {
    const base = join(folder, 'base');
    cpSync(recorded('separate_experts', 'base'), base, { recursive: true });
    writeFileSync(join(base, 'config.json'), JSON.stringify({ model_type: 'deepseek_v3' }));
    const words = ['checkpoint', 'export', recorded('separate_experts', 'adapter'), '--base', base];
    const { stderr } = await run([...words, '-o', join(folder, 'out')]);
    expect(stderr).toContain('vLLM serves no adapters of DeepSeek V3');
  });

  it('without the output matrix it is written for vLLM', async () => {
    const adapter = await withoutUnembed(recorded('dense', 'adapter'));
    const output = join(folder, 'out');
    const { code } = await run(['checkpoint', 'export', adapter, '--base', recorded('dense', 'base'), '-o', output]);
    expect(code).toBe(0);
    expect(names(await tensorsOf(join(output, 'adapter_model.safetensors')))).toHaveLength(4);
  });
});

it('a tied output matrix becomes a tensor of its own, and the embeddings stay', async () => {
  const base = join(folder, 'base');
  mkdirSync(base);
  writeFileSync(join(base, 'config.json'), JSON.stringify({ model_type: 'qwen3', tie_word_embeddings: true }));
  const tensors = await tensorsOf(recorded('dense', 'base', 'model.safetensors'));
  const kept = Object.entries(tensors).filter(([name]) => name !== 'lm_head.weight');
  await write(join(base, 'model.safetensors'), kept);
  const output = join(folder, 'out');
  const { code, stderr } = await run([
    'checkpoint',
    'merge',
    recorded('dense', 'adapter'),
    '--base',
    base,
    '-o',
    output,
  ]);
  expect(code).toBe(0);
  expect(stderr).toContain('It is a separate tensor now');
  const merged = await tensorsOf(join(output, 'model.safetensors'));
  expect(merged['model.embed_tokens.weight']).toStrictEqual(tensors['model.embed_tokens.weight']);
  expect(merged['lm_head.weight']!.bytes).not.toStrictEqual(tensors['model.embed_tokens.weight']!.bytes);
  expect(JSON.parse(readFileSync(join(output, 'config.json'), 'utf8'))).toMatchObject({ tie_word_embeddings: false });
});

it('an adapter of another model is refused before anything is written', async () => {
  const output = join(folder, 'out');
  const words = ['checkpoint', 'merge', recorded('dense', 'adapter'), '--base', recorded('gpt_oss', 'base')];
  const { code, stderr } = await run([...words, '-o', output]);
  expect(code).toBe(1);
  expect(stderr).toContain('The base model has no model.layers.0.mlp.down_proj.weight, which the adapter changes');
  expect(existsSync(`${output}.partial`)).toBe(false);
});

it('has the logits that peft and transformers gave for it when it was recorded', () => {
  const { results } = JSON.parse(readFileSync(recorded('logits.json'), 'utf8')) as {
    results: Record<'adapterChangesLogitsBy' | 'peftDiffersBy' | 'mergedDiffersBy', number>[];
  };
  expect(results).toHaveLength(8);
  for (const { adapterChangesLogitsBy, peftDiffersBy, mergedDiffersBy } of results) {
    expect(adapterChangesLogitsBy).toBeGreaterThan(1);
    expect(peftDiffersBy).toBeLessThan(1e-5);
    expect(mergedDiffersBy).toBeLessThan(1e-5);
  }
});

it('of a base model on the hub only the configuration and the header of the weights are fetched', async () => {
  const read = (name: string) => readFileSync(recorded('separate_experts', 'base', name));
  const [config, weights] = [read('config.json'), read('model.safetensors')];
  await using hub = await HubServer.start({
    'config.json': { content: config },
    'model.safetensors': { content: weights, isLarge: true },
  });
  vi.stubEnv('HF_ENDPOINT', hub.url);
  vi.stubEnv('HF_HUB_CACHE', join(folder, 'cache'));
  const output = join(folder, 'out');
  const words = ['checkpoint', 'export', recorded('separate_experts', 'adapter'), '--base', 'org/name', '-o', output];
  const { code, stderr } = await run(words);
  vi.unstubAllEnvs();
  expect(stderr).toContain('Adapters of experts are experimental in vLLM');
  expect(code).toBe(0);
  const ranges = hub.seen.filter(({ url }) => url.includes('model.safetensors')).map(({ range }) => range);
  expect([...new Set(ranges.filter((range) => range !== undefined))]).toStrictEqual([
    'bytes=0-7',
    `bytes=8-${7 + Number(weights.readBigUInt64LE(0))}`,
  ]);
  const ours = await tensorsOf(join(output, 'adapter_model.safetensors'));
  expect(ours).toStrictEqual(await tensorsOf(recorded('separate_experts', 'peft', 'adapter_model.safetensors')));
});
