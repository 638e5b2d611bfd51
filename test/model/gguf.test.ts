/** An adapter trained here, merged and written as GGUF, says in llama.cpp what it says here. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exportGguf, GGUF_TYPES } from '../../src/adapters/index.js';
import { Engine, exportPeft } from '../../src/local/engine/index.js';
import { openModel } from '../../src/local/weights/openModel.js';
import { askLlamaCpp, hasLlamaCpp } from './llamaCpp.js';
import { smollm2File } from './smollm2File.js';
import { batch, recorded } from './smollm2Recorded.js';

const file = await smollm2File();
const available = file !== undefined && (await hasLlamaCpp());
const BASE = 'smollm2';
const TOKENS = 24;
const prompts = recorded.prompts.slice(0, 5).map(({ tokens }) => tokens);

/** llama.cpp stops at the end token and does not give it. */
const withoutEnd = (tokens: readonly number[]): readonly number[] =>
  tokens.at(-1) === 2 ? tokens.slice(0, -1) : tokens;

describe.skipIf(!available)('SmolLM2 in llama.cpp', () => {
  let folder: string;
  let engine: Engine;
  let trained: readonly (readonly number[])[];
  const [untrained, adapter] = ['untrained', 'adapter'];
  const writeAdapter = async (name: string) => {
    await mkdir(join(folder, name));
    const files = exportPeft(await engine.exportState('style'));
    for (const [file, bytes] of Object.entries(files)) await writeFile(join(folder, name, file), bytes);
  };
  const greedy = async (samplerId: string) => {
    const results = await Promise.all(
      prompts.map((prompt) =>
        engine.sample(samplerId, { prompt: Int32Array.from(prompt), maxTokens: TOKENS, temperature: 0 }),
      ),
    );
    return results.map(({ sequences }) => [...sequences[0]!.tokens]);
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gguf-'));
    const model = await openModel({ path: file!, name: BASE });
    engine = await Engine.start({ models: [model] });
    await model.close();
    await engine.createModel({ modelId: 'style', baseModel: BASE, lora: { rank: 8, seed: 1 } });
    await writeAdapter(untrained);
    for (let step = 0; step < 5; step++) {
      await engine.forwardBackward('style', batch(), 'cross_entropy');
      await engine.optimStep('style', { learningRate: 1e-3 });
    }
    await engine.createSampler({ samplerId: 'style', modelId: 'style' });
    trained = await greedy('style');
    await writeAdapter(adapter);
  });
  afterAll(async () => {
    await engine.close();
    await rm(folder, { recursive: true });
  });

  it('cuts the recorded texts into the same tokens', async () => {
    const { texts } = JSON.parse(
      readFileSync(new URL('../parity/recorded/smollm2_text.json', import.meta.url), 'utf8'),
    ) as { readonly texts: readonly { readonly text: string; readonly trusted: readonly number[] }[] };
    // llama.cpp reads no special tokens in these, so texts with one are left out.
    const plain = texts.filter(({ text }) => !/<\|?\w+\|?>/.test(text));
    const { tokenized } = await askLlamaCpp({
      path: file!,
      prompts: [],
      maxTokens: 0,
      texts: plain.map(({ text }) => text),
    });
    expect(plain.length).toBeGreaterThan(100);
    expect(tokenized).toEqual(plain.map(({ trusted }) => trusted));
  });

  // The Q4_1 file itself is no witness: llama.cpp rounds activations to 8 bits for it, and says that the capital of France is "L'Étoile".
  it('says what Python says with the dequantised weights', async () => {
    const output = join(folder, 'base.gguf');
    await exportGguf({ adapter: join(folder, untrained), base: file!, output });
    const answer = await askLlamaCpp({ path: output, prompts, maxTokens: TOKENS, texts: [] });
    const expected = recorded.prompts.slice(0, 5).map(({ greedy: tokens }) => withoutEnd(tokens.slice(0, TOKENS)));
    expect(answer.greedy).toEqual(expected);
  });

  it.each(GGUF_TYPES)('says the same after an export as %s', async (type) => {
    const output = join(folder, `${type}.gguf`);
    await exportGguf({ adapter: join(folder, adapter), base: file!, output, type });
    const answer = await askLlamaCpp({ path: output, prompts, maxTokens: TOKENS, texts: [] });
    expect(answer.greedy).toEqual(trained.map(withoutEnd));
  });
});
