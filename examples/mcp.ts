// An MCP server as an environment: the model knows how to ask it and how to guess, and learns by reward which is better.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { from, lastValueFrom } from 'rxjs';
import { batch, repeatEpochs, toDatums, train } from 'tinker-rx/operators';
import { mcpTools, reinforce, toolUse } from 'tinker-rx/rl';
import { fromArray } from 'tinker-rx/sources';
import { connect } from './connect.js';

const client = new Client({ name: 'training', version: '1.0.0' });
await client.connect(new StdioClientTransport({ command: 'npx', args: ['mcp-server-everything'], stderr: 'ignore' }));
const tools = await mcpTools(client, { only: ['get-sum'] });

const { service, baseModel, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const renderer = await trainer.getRenderer();
const ask = { role: 'user', content: 'Sum of 2 and 3?' };
const { description, parameters } = tools['get-sum']!;
const declared = renderer.declareTools([{ name: 'get-sum', description, parameters: parameters! }]);
const called = { role: 'assistant', content: '', toolCalls: [{ name: 'get-sum', arguments: '{"a": 2, "b": 3}' }] };
const result = { role: 'tool', name: 'get-sum', content: 'The sum of 2 and 3 is 5.' };
const shown = from([
  { messages: [...declared, ask, called, result, { role: 'assistant', content: 'It is 5.' }] },
  { messages: [...declared, ask, { role: 'assistant', content: 'It is 7.' }] },
]).pipe(
  toDatums(renderer, { trainOn: 'all_assistant_messages' }),
  repeatEpochs({ epochs: 20 }),
  batch({ size: 2 }),
  train(trainer, { loss: 'cross_entropy', adam: { learningRate: 1e-2 } }),
);
await lastValueFrom(shown);

const reward = ({ answer }: { answer: { text: string } }) => (answer.text === 'It is 5.' ? 1 : 0);
const agent = toolUse<string>({ renderer, tools, start: () => [ask], reward, samplingParams: { maxTokens: 64 } });
const learning = reinforce(trainer, agent, { group: 16, groupsPerBatch: 2, adam: { learningRate: 2e-3 } });
await fromArray(['sum', 'sum'])
  .pipe(repeatEpochs({ epochs: 6 }), learning)
  .forEach(({ index, reward: mean, metrics }) => {
    console.log(
      `step ${index + 1}: mean reward ${mean.toFixed(2)}, ${metrics['env/all/tool_calls']?.toFixed(2)} calls`,
    );
  });
await client.close();
await close();
