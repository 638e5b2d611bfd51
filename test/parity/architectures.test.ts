/**
 * Small models of each architecture are read as transformers and Python's gguf read them. `recorded/architectures` is made by
 * record_architectures.py.
 */
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Engine } from '../../src/local/engine/index.js';
import { baseTensors } from '../../src/local/engine/model/shapes.js';
import { openModel } from '../../src/local/weights/openModel.js';

const recorded = (...path: string[]) =>
  fileURLToPath(new URL(join('recorded/architectures', ...path), import.meta.url));
const ARCHITECTURES = ['llama', 'qwen2', 'qwen3'];

interface Expected {
  readonly tokens: readonly number[];
  /** Of the weights in the folder. */
  readonly logits: string;
  readonly ggufLogits: string;
  readonly ggufTensors: Readonly<Record<string, string>>;
}
const expectedOf = (name: string) => JSON.parse(readFileSync(recorded(name, 'expected.json'), 'utf8')) as Expected;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'architectures-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe.each(ARCHITECTURES)('%s', (name) => {
  it('the GGUF file has the shape of the folder', async () => {
    const [inFolder, inFile] = [
      await openModel({ path: recorded(name), name }),
      await openModel({ path: recorded(name, 'model.gguf'), name }),
    ];
    const { normEps, ...shape } = inFolder.shape;
    expect(inFile.shape).toMatchObject(shape);
    expect(inFile.shape.normEps).toBe(Math.fround(normEps!));
    expect(inFile.endTokens).toStrictEqual(inFolder.endTokens);
    await Promise.all([inFolder.close(), inFile.close()]);
  });

  it('dequantised tensors are those of Python, bit for bit, under the names of Hugging Face', async () => {
    const model = await openModel({ path: recorded(name, 'model.gguf') });
    const { ggufTensors } = expectedOf(name);
    expect(
      baseTensors(model.shape)
        .map((tensor) => tensor.name)
        .sort(),
    ).toStrictEqual(Object.keys(ggufTensors).sort());
    for (const [tensor, digest] of Object.entries(ggufTensors)) {
      const stored = await model.tensor(tensor);
      const values = stored.dtype === 'f32' ? stored.data : widened(stored.data);
      expect([tensor, createHash('sha256').update(values).digest('hex')]).toStrictEqual([tensor, digest]);
    }
    await model.close();
  });
});

it('logits of every architecture are those of transformers, from folders and from GGUF files', async () => {
  const sources = ARCHITECTURES.flatMap((name) => [
    { name, path: recorded(name), key: 'logits' as const },
    { name: `${name}.gguf`, path: recorded(name, 'model.gguf'), key: 'ggufLogits' as const },
  ]);
  const models = await Promise.all(sources.map(({ name, path }) => openModel({ name, path })));
  const engine = await Engine.start({ models, threads: 1 });
  for (const { name, key } of sources) {
    const expected = expectedOf(name.replace('.gguf', ''));
    const { tokens } = expected;
    const logits = new Float32Array(new Uint8Array(Buffer.from(expected[key], 'base64')).buffer);
    const vocabulary = logits.length / tokens.length;
    await engine.createSampler({ samplerId: name, baseModel: name });
    // Row i asks for what follows token i. One more token, so that the last one has a row too.
    const ids = Float64Array.from(logits, (_, i) => i % vocabulary);
    const { targetPromptLogprobs } = await engine.sample(name, {
      prompt: Int32Array.of(...tokens, 0),
      maxTokens: 1,
      targetPromptLogprobs: { dtype: 'int64', data: ids, shape: [tokens.length, vocabulary] },
    });
    const sums = tokens.map((_, row) =>
      Math.log(logits.subarray(row * vocabulary, (row + 1) * vocabulary).reduce((sum, x) => sum + Math.exp(x), 0)),
    );
    const differences = Array.from(targetPromptLogprobs!.data, (value, i) =>
      Math.abs(value - (logits[i]! - sums[Math.floor(i / vocabulary)]!)),
    );
    expect([name, Math.max(...differences) < 1e-4]).toEqual([name, true]);
  }
  await engine.close();
  await Promise.all(models.map((model) => model.close()));
});

const widened = (halves: Uint16Array): Float32Array =>
  new Float32Array(Uint32Array.from(halves, (half) => half << 16).buffer);

describe('a model that cannot be read', () => {
  const copy = (name: string, change: (config: Record<string, unknown>) => object): string => {
    cpSync(recorded(name), folder, { recursive: true });
    const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as Record<string, unknown>;
    writeFileSync(join(folder, 'config.json'), JSON.stringify(change(config)));
    return folder;
  };

  it.each([
    [{ model_type: 'gemma3' }, 'model_type is "gemma3", not one of llama, qwen2, qwen3'],
    [{ hidden_size: undefined }, 'hidden_size is missing, not a whole number above 0'],
    [{ attention_bias: true }, 'attention_bias is true, which is not supported here'],
    [{ hidden_act: 'gelu' }, 'hidden_act is "gelu", which is not supported here'],
    [{ rope_parameters: { rope_type: 'yarn' } }, 'rope_scaling.rope_type is "yarn", which is not supported here'],
    [{ quantization_config: { bits: 4 } }, 'quantization_config is {"bits":4}, which is not supported here'],
    [{ num_key_value_heads: 4 }, 'model.layers.0.self_attn.k_proj.weight is [16, 32], not [32, 32]'],
    [{ num_hidden_layers: 3 }, 'model.layers.2.input_layernorm.weight is missing, not [32]'],
  ])('names the field or the tensor: %j', async (wrong, message) => {
    await expect(openModel({ path: copy('llama', (config) => ({ ...config, ...wrong })) })).rejects.toThrow(message);
  });

  it('names a tensor that the file ends in', async () => {
    const path = join(folder, 'model.gguf');
    cpSync(recorded('qwen2', 'model.gguf'), path);
    truncateSync(path, 50_000);
    await expect(openModel({ path })).rejects.toThrow(/model\.gguf is cut short: \S+weight ends at byte \d+ of 50000/);
    truncateSync(path, 500);
    await expect(openModel({ path })).rejects.toThrow('model.gguf is cut short: it ends within its header');
  });

  it('names a type of tensor that is not read here', async () => {
    const bytes = readFileSync(recorded('qwen3', 'model.gguf'));
    const name = 'blk.0.attn_q.weight';
    // Name, number of dimensions, two dimensions, then the type.
    bytes.writeUInt32LE(12, bytes.indexOf(name) + name.length + 4 + 16);
    const path = join(folder, 'model.gguf');
    writeFileSync(path, bytes);
    const model = await openModel({ path });
    await expect(model.tensor('model.layers.0.self_attn.q_proj.weight')).rejects.toThrow(
      'blk.0.attn_q.weight is stored as Q4_K. Read here: F32, F16, BF16, Q4_0, Q4_1, Q8_0',
    );
    await model.close();
  });

  it('says how much memory it needs where the machine has less', async () => {
    const available = vi.spyOn(process, 'availableMemory').mockReturnValue(4096);
    const model = await openModel({ path: recorded('llama') });
    await expect(Engine.start({ models: [model] })).rejects.toThrow(
      /^llama needs \d+ MiB of memory for its weights, and \d+ MiB are available/,
    );
    available.mockRestore();
    await model.close();
  });

  it('says what is not there, and what is not a model', async () => {
    await expect(openModel({ path: join(folder, 'nothing') })).rejects.toThrow('There is no folder or file');
    await expect(openModel({ path: folder })).rejects.toThrow('has no config.json');
    writeFileSync(join(folder, 'text.gguf'), 'some words, and nothing of a model');
    await expect(openModel({ path: join(folder, 'text.gguf') })).rejects.toThrow('text.gguf is not a GGUF file');
  });
});
