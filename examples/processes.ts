// Several processes that sample from one model: the sampler travels as a string, the key does not.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { SamplingClient, ServiceClient } from 'tinker-rx';
import { LocalTinker } from 'tinker-rx/local';

const questions = ['What color is the sky?', 'What color is grass?', 'What color is snow?'];
const [handle, question = ''] = process.argv.slice(2);

if (handle === undefined) {
  // The first process: it owns the session, and lives as long as the others sample.
  const local = process.env['TINKER_API_KEY'] ? undefined : await LocalTinker.start();
  const service = new ServiceClient(local === undefined ? {} : { baseUrl: local.url, apiKey: local.apiKey });
  const baseModel = process.env['BASE_MODEL'] ?? (local === undefined ? 'Qwen/Qwen3-8B' : 'tinker-rx/tiny');
  const sampler = await service.createSamplingClient({ baseModel });
  const env = { ...process.env, ...(local === undefined ? {} : { TINKER_API_KEY: local.apiKey }) };
  const answers = questions.map(async (each) => {
    const child = fork(fileURLToPath(import.meta.url), [sampler.getSamplerHandle(), each], { env });
    const [answer] = (await once(child, 'message')) as [string];
    return answer;
  });
  for (const answer of answers) console.log(await answer);
  await service.close();
  await local?.close();
} else {
  // Every other process: a handle, a key of its own, and nothing else.
  const sampler = SamplingClient.fromSamplerHandle(handle);
  const renderer = await sampler.getRenderer();
  const { sequences } = await sampler.sample({
    prompt: renderer.buildGenerationPrompt([{ role: 'user', content: question }]),
    samplingParams: { maxTokens: 40, temperature: 0, stop: renderer.getStopSequences() },
  });
  process.send?.(`${question} ${renderer.parse(sequences[0]!.tokens).text}`);
  await sampler.close();
  process.disconnect();
}
