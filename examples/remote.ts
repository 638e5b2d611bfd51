// A remote rollout: the agent is a program behind HTTP, here in this process, elsewhere in any language on any machine.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import OpenAI from 'openai';
import { repeatEpochs } from 'tinker-rx/operators';
import { reinforce } from 'tinker-rx/rl';
import { remoteRollout } from 'tinker-rx/serve';
import { fromJsonl } from 'tinker-rx/sources';
import { connect } from './connect.js';

interface Fact {
  question: string;
  answer: string;
}

// The agent knows OpenAI's API and nothing of training. It is told its task and its model, and answers with a reward.
const agent = createServer((request, response) => {
  void (async () => {
    const asked = (await json(request)) as { task: Fact; base_url: string; api_key: string; model: string };
    const openai = new OpenAI({ baseURL: asked.base_url, apiKey: asked.api_key });
    const messages = [{ role: 'user' as const, content: asked.task.question }];
    const reply = await openai.chat.completions.create({ model: asked.model, messages, max_tokens: 32 });
    const reward = reply.choices[0]?.message.content === asked.task.answer ? 1 : 0;
    response.end(JSON.stringify({ reward }));
  })().catch((error: unknown) => response.writeHead(500).end(String(error)));
});
await new Promise<void>((listening) => agent.listen(0, '127.0.0.1', listening));
const address = `http://127.0.0.1:${(agent.address() as AddressInfo).port}/rollout`;

const { service, baseModel, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const rollout = remoteRollout<Fact>(address, { renderer: await trainer.getRenderer() });
const learning = reinforce(trainer, rollout, { group: 16, groupsPerBatch: 16, adam: { learningRate: 3e-3 } });
await fromJsonl<Fact>(new URL('./data/facts.jsonl', import.meta.url).pathname)
  .pipe(repeatEpochs({ epochs: 5 }), learning)
  .forEach(({ index, reward }) => console.log(`step ${index + 1}: mean reward ${reward.toFixed(2)}`));
agent.close();
await close();
