// A trained model as one file for llama.cpp, Ollama and LM Studio. MODEL is a folder of Hugging Face or a .gguf file.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { lastValueFrom } from 'rxjs';
import { ServiceClient } from 'tinker-rx';
import { LocalTinker } from 'tinker-rx/local';
import { batch, repeatEpochs, toDatums, train } from 'tinker-rx/operators';
import { fromArray } from 'tinker-rx/sources';

const base = process.env['MODEL'] ?? './SmolLM2-135M-Instruct.Q4_1.gguf';
const open = async (path: string) => {
  const local = await LocalTinker.start({ models: [{ path, name: 'mine' }] });
  return { local, service: new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey }) };
};
type Sampler = Awaited<ReturnType<ServiceClient['createSamplingClient']>>;
const question = 'What did the pirate say?';
const ask = async (sampler: Sampler) => {
  const renderer = await sampler.getRenderer('chat_template');
  const { text } = await sampler.reply(question, { renderer, samplingParams: { maxTokens: 12, temperature: 0 } });
  return JSON.stringify(text);
};

const { local, service } = await open(base);
const trainer = await service.createLoraTrainingClient({ baseModel: 'mine', rank: 8, seed: 1 });
const rows = fromArray([{ prompt: question, completion: 'Arr, matey!' }]).pipe(repeatEpochs({ epochs: 12 }));
const batches = rows.pipe(toDatums(await trainer.getRenderer('chat_template')), batch({ size: 1 }));
await lastValueFrom(batches.pipe(train(trainer, { loss: 'cross_entropy', adam: { learningRate: 1e-2 } })));
console.log(`here:          ${await ask(await trainer.saveWeightsAndGetSamplingClient())}`);

const folder = await mkdtemp(join(tmpdir(), 'gguf-'));
const [{ path }, output] = [await trainer.saveState('final'), join(folder, 'pirate.gguf')];
const env = { ...process.env, TINKER_BASE_URL: local.url, TINKER_API_KEY: local.apiKey };
const command = ['tinker-rx', 'checkpoint', 'export', path, '--gguf', 'f16', '--base', base, '-o', output];
await promisify(execFile)('npx', command, { env });
const file = await open(output);
console.log(`from the file: ${await ask(await file.service.createSamplingClient({ baseModel: 'mine' }))}`);
for (const each of [service, local, file.service, file.local]) await each.close();
await rm(folder, { recursive: true });
