// An application: a model is trained here, served over HTTP, and a web page streams its answers through the AI SDK.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { streamText } from 'ai';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { lastValueFrom } from 'rxjs';
import { batch, repeatEpochs, shuffle, toDatums, train } from 'tinker-rx/operators';
import { serveSampler } from 'tinker-rx/serve';
import { fromConversations } from 'tinker-rx/sources';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const { loss } = await lastValueFrom(
  fromConversations(new URL('./data/questions.jsonl', import.meta.url).pathname).pipe(
    toDatums(await trainer.getRenderer()),
    repeatEpochs({ epochs: 40 }),
    shuffle({ window: 20, seed: 1 }),
    batch({ size: 20 }),
    train(trainer, { loss: 'cross_entropy', adam: { learningRate: 1e-2 } }),
  ),
);
console.log(`trained: ${loss.toFixed(3)} nats per token`);

// Any client of OpenAI's or Anthropic's API can talk to this address now; the page below does through the AI SDK.
const gateway = await serveSampler(await trainer.saveWeightsAndGetSamplingClient(), { pieceTokens: 2 });
const { baseURL, apiKey } = gateway;
const model = createOpenAICompatible({ name: 'mine', baseURL, apiKey }).chatModel(baseModel);

const page = `<!doctype html><meta name="viewport" content="width=device-width"><title>Ask</title>
<style>body{font:1.1rem/1.5 system-ui;max-width:34rem;margin:4rem auto;padding:0 1rem}input{font:inherit;width:100%;padding:.5rem}</style>
<h1>Ask the model</h1><form><input aria-label="Question" value="What is the capital of France?"></form><p><output></output></p>
<script>
document.querySelector('form').onsubmit = async (event) => {
  event.preventDefault();
  const output = document.querySelector('output');
  output.textContent = '';
  const { body } = await fetch('/ask', { method: 'POST', body: document.querySelector('input').value });
  for await (const part of body.pipeThrough(new TextDecoderStream())) output.textContent += part;
};
</script>`;

const server = createServer((request, response) => {
  if (request.url !== '/ask') return void response.setHeader('content-type', 'text/html; charset=utf-8').end(page);
  const stop = new AbortController();
  response.on('close', () => stop.abort()); // a reader who leaves cancels the sample
  const ask = (prompt: string) => streamText({ model, prompt, temperature: 0, abortSignal: stop.signal });
  text(request)
    .then((prompt) => ask(prompt).pipeTextStreamToResponse(response))
    .catch(console.error);
}).listen(Number(process.env['PORT'] ?? 0), '127.0.0.1');
await once(server, 'listening');
console.log(`open http://127.0.0.1:${(server.address() as { port: number }).port}`);

await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
server.close().closeAllConnections();
await gateway.close();
await close();
