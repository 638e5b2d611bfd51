// An agent with a tool: it knows how to call it and how to guess, and learns by reward which of the two is better.
import { lastValueFrom } from 'rxjs';
import { batch, repeatEpochs, toDatums, train } from 'tinker-rx/operators';
import { reinforce, toolUse } from 'tinker-rx/rl';
import { fromArray, fromConversations } from 'tinker-rx/sources';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const renderer = await trainer.getRenderer();

// Two conversations, one that looks the weather up and one that guesses it.
const shown = fromConversations(new URL('./data/weather.jsonl', import.meta.url).pathname).pipe(
  toDatums(renderer, { trainOn: 'all_assistant_messages' }),
  repeatEpochs({ epochs: 20 }),
  batch({ size: 2 }),
  train(trainer, { loss: 'cross_entropy', adam: { learningRate: 1e-2 } }),
);
await lastValueFrom(shown);

// Any Standard Schema will do for `inputSchema`: one of Zod's, for instance.
const anything = { '~standard': { version: 1, vendor: 'example', validate: (value: unknown) => ({ value }) } } as const;
const agent = toolUse<string>({
  renderer,
  tools: {
    look: {
      description: 'Looks up the weather.',
      inputSchema: anything,
      parameters: { type: 'object' },
      execute: () => 'rain',
    },
  },
  start: (question) => [{ role: 'user', content: question }],
  reward: ({ answer }) => (answer.text === 'It rains.' ? 1 : 0),
  samplingParams: { maxTokens: 64 },
});
const learning = reinforce(trainer, agent, { group: 16, groupsPerBatch: 2, adam: { learningRate: 2e-3 } });
const tasks = fromArray(['Weather in Rome?', 'Weather in Rome?']).pipe(repeatEpochs({ epochs: 6 }));
await tasks.pipe(learning).forEach(({ index, reward, metrics }) => {
  console.log(
    `step ${index + 1}: mean reward ${reward.toFixed(2)}, ${metrics['env/all/tool_calls']?.toFixed(2)} calls`,
  );
});
await close();
