import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { ServiceClient } from '../../src/index.js';
import { LocalTinker } from '../../src/local/index.js';

const path = (name: string) => fileURLToPath(new URL(`../parity/${name}`, import.meta.url));

it.each(['llama', 'qwen3'])(
  "Python's get_tokenizer() loads the tokenizer of a GGUF file (%s), as getTokenizer() does",
  async (name) => {
    await using local = await LocalTinker.start({
      models: [{ path: path(`recorded/architectures/${name}/model.gguf`), name }],
      threads: 1,
    });
    const env = { ...process.env, TINKER_BASE_URL: local.url, TINKER_API_KEY: local.apiKey, HF_HUB_OFFLINE: '1' };
    const { stdout } = await promisify(execFile)('python3', [path('local_tokenizer.py'), name], { env });
    const python = JSON.parse(stdout.trim().split('\n').at(-1)!) as { text: string; tokens: number[]; decoded: string };
    const service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey });
    const tokenizer = await (await service.createLoraTrainingClient({ baseModel: name, rank: 1 })).getTokenizer();
    expect(python.tokens).toEqual([...tokenizer.encodeWithSpecials(python.text)]);
    expect(python.decoded).toBe(python.text);
    await service.close();
  },
);
