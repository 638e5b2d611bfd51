import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, isStepCount, jsonSchema, tool } from 'ai';
import OpenAI from 'openai';
import { firstValueFrom, from, lastValueFrom, take, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ServiceClient, TinkerFuture, type TrainingClient } from '../../src/index.js';
import { LocalTinker } from '../../src/local/index.js';
import { batch, repeatEpochs, toDatums, train } from '../../src/operators/index.js';
import { reinforce, rollouts, type Group } from '../../src/rl/index.js';
import { agentRollout, serveSampler } from '../../src/serve/index.js';
import { call, renderer, scripted, tokenizer } from './support/scriptedSampler.js';

const add = tool({
  description: 'Adds.',
  inputSchema: jsonSchema<{ a: number; b: number }>({ type: 'object' }),
  execute: ({ a, b }) => a + b,
});

/** An agent as people have them: it knows the AI SDK and nothing of training. */
const calculator = agentRollout(
  async ({ baseURL, apiKey, model, signal }, question: string) => {
    const provider = createOpenAICompatible({ name: 'policy', baseURL, apiKey });
    const { text } = await generateText({
      model: provider.chatModel(model),
      prompt: question,
      tools: { add },
      stopWhen: isStepCount(3),
      abortSignal: signal,
    });
    return text === 'It is 5.' ? 1 : 0;
  },
  { renderer, maxTokens: 64 },
);

const groupOf = (replies: Parameters<typeof scripted>[0], agent = calculator, size = 1): Promise<Group<string>> =>
  firstValueFrom(from(['2 and 3?']).pipe(rollouts(agent, { policy: scripted(replies).sampler as never, group: size })));

describe('an agent’s conversation as a rollout', () => {
  it('has the exact ids of every turn, each prompt extending the turn before it', async () => {
    const { trajectories } = await groupOf([call('add', { a: 2, b: 3 }), 'It is 5.']);
    const { turns, reward, metrics = {} } = trajectories[0]!;
    expect([reward, metrics['agent/branches'], turns.length]).toEqual([1, 1, 2]);
    // Written without the spaces that the template would put in when it writes the call again.
    const first = [...turns[0]!.prompt.toInts(), ...turns[0]!.sequence.tokens];
    expect(tokenizer.decode(turns[0]!.sequence.tokens)).toBe('<|tool|>{"name":"add","arguments":{"a":2,"b":3}}<|end|>');
    expect([...turns[1]!.prompt.toInts()].slice(0, first.length)).toEqual(first);
    expect(tokenizer.decode(turns[1]!.prompt.toInts().slice(first.length))).toBe('<|tool|>5<|end|><|assistant|>');
    expect([...turns[1]!.sequence.logprobs!]).toEqual(Array.from(turns[1]!.sequence.tokens, () => -0.5));
  });

  it('may end with true or false, and says what else it may return', async () => {
    const ending = (result: unknown) =>
      agentRollout(
        async ({ baseURL, apiKey, model }, content: string) => {
          const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
          await client.chat.completions.create({ model, messages: [{ role: 'user', content }] });
          return result as number;
        },
        { renderer, maxTokens: 64 },
      );
    const rewardOf = async (result: unknown) => {
      const { trajectories, failures } = await groupOf(['Done.'], ending(result));
      return trajectories[0]?.reward ?? failures[0]!.message;
    };
    expect(await rewardOf(true)).toBe(1);
    expect(await rewardOf({ reward: false, tags: [] })).toBe(0);
    expect(await rewardOf(undefined)).toBe(
      'the reward of an agent is undefined (is a return missing?); it must be a finite number, true or false, or { reward, metrics }',
    );
    expect(await rewardOf('yes')).toContain('the reward of an agent is the text "yes"');
  });

  it('a history that was edited begins a new branch, and is counted', async () => {
    const forgetful = agentRollout(
      async ({ baseURL, apiKey, model }, _question: string) => {
        const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
        const ask = (content: string) =>
          client.chat.completions.create({ model, messages: [{ role: 'user', content }] });
        await ask('one');
        await ask('two');
        return { reward: 0.5, tags: ['forgetful'] };
      },
      { renderer },
    );
    const { trajectories } = await groupOf(['a', 'b'], forgetful);
    expect(trajectories[0]).toMatchObject({ reward: 0.5, tags: ['forgetful'], metrics: { 'agent/branches': 2 } });
  });

  it.each([
    ['a stop string', 'one. two', { stop: ['. '] }, 'one'],
    ['JSON in a fence', '```json\n{"a": 1}\n```', { response_format: { type: 'json_object' as const } }, '{"a": 1}'],
  ])('%s cuts what the agent sees, and neither its branch nor the exact ids', async (_what, reply, options, seen) => {
    const agent = agentRollout(
      async ({ baseURL, apiKey, model }, question: string) => {
        const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
        const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: question }];
        const { choices } = await client.chat.completions.create({ model, messages, ...options });
        messages.push(choices[0]!.message, { role: 'user', content: 'More.' });
        await client.chat.completions.create({ model, messages, ...options });
        return choices[0]!.message.content === seen ? 1 : 0;
      },
      { renderer },
    );
    const { trajectories } = await groupOf([reply], agent);
    const { turns, reward, metrics = {} } = trajectories[0]!;
    expect([reward, metrics['agent/branches'], turns.length]).toEqual([1, 1, 2]);
    const first = [...turns[0]!.prompt.toInts(), ...turns[0]!.sequence.tokens];
    expect(tokenizer.decode(turns[0]!.sequence.tokens)).toBe(`${reply}<|end|>`);
    expect([...turns[1]!.prompt.toInts()].slice(0, first.length)).toEqual(first);
  });

  it('one that throws, or asks nothing, costs itself and says why', async () => {
    const failing = agentRollout<string>(() => Promise.reject(new Error('no idea')), { renderer });
    const silent = agentRollout<string>(() => 1, { renderer });
    expect((await groupOf(['x'], failing)).failures[0]?.message).toBe('no idea');
    expect((await groupOf(['x'], silent)).failures[0]?.message).toMatch('without asking its model');
  });
});

it('a gateway records sessions apart from each other and from its other callers', async () => {
  const { sampler } = scripted(['one', 'two', 'three']);
  const gateway = await serveSampler(sampler);
  const policy = {
    sample: (options: Parameters<typeof sampler.sample>[0]) =>
      new TinkerFuture(() =>
        from(
          sampler
            .sample(options)
            .then(({ sequences }) => sequences.map((sequence) => ({ prompt: options.prompt, sequence }))),
        ),
      ),
  };
  const sessions = [gateway.record(policy, renderer), gateway.record(policy, renderer)];
  const watched = lastValueFrom(sessions[0]!.turns$.pipe(toArray()));
  const say = async ({ baseURL, apiKey }: { baseURL: string; apiKey: string }) => {
    const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
    const { choices } = await client.chat.completions.create({
      model: 'test/model',
      messages: [{ role: 'user', content: 'x' }],
    });
    return choices[0]!.message.content;
  };
  expect([await say(sessions[0]!), await say(gateway), await say(sessions[1]!)]).toEqual(['one', 'two', 'three']);
  expect(sessions.map(({ turns }) => turns.map(({ sequence }) => tokenizer.decode(sequence.tokens)))).toEqual([
    ['one<|end|>'],
    ['three<|end|>'],
  ]);
  sessions[0]!.close();
  expect((await watched).length).toBe(1);
  await expect(say(sessions[0]!)).rejects.toMatchObject({ status: 404 });
  await gateway.close();
});

describe('on the embedded service', () => {
  let local: LocalTinker;
  let service: ServiceClient;
  let trainer: TrainingClient;
  beforeAll(async () => {
    local = await LocalTinker.start();
    service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey });
    trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 16, seed: 1 });
    const declared = renderer.declareTools([{ name: 'add', description: 'Adds.', parameters: { type: 'object' } }]);
    const question = { role: 'user', content: '2 and 3?' };
    const using = [
      { role: 'assistant', content: '', toolCalls: [{ name: 'add', arguments: '{"a": 2, "b": 3}' }] },
      { role: 'tool', name: 'add', content: '5' },
      { role: 'assistant', content: 'It is 5.' },
    ];
    const guessing = [{ role: 'assistant', content: 'No idea.' }];
    // It knows both ways, and prefers neither: which one is better is what it has to learn.
    await lastValueFrom(
      from([{ messages: [...declared, question, ...using] }, { messages: [...declared, question, ...guessing] }]).pipe(
        toDatums(renderer, { trainOn: 'all_assistant_messages' }),
        repeatEpochs({ epochs: 20 }),
        batch({ size: 2 }),
        train(trainer, { loss: 'cross_entropy', adam: { learningRate: 1e-2 } }),
      ),
    );
  });
  afterAll(async () => {
    await service.close();
    await local.close();
  });

  it('the AI SDK’s own agent loop is trained by GRPO, and its reward rises', async () => {
    const steps = await lastValueFrom(
      from(['2 and 3?', '2 and 3?']).pipe(
        repeatEpochs({ epochs: 12 }),
        reinforce(trainer, calculator, { group: 8, groupsPerBatch: 2, adam: { learningRate: 3e-3 } }),
        take(6),
        toArray(),
      ),
    );
    const rewards = steps.map(({ reward }) => reward);
    expect(rewards[0]).toBeLessThan(0.9);
    expect(Math.max(...rewards.slice(-3))).toBeGreaterThan(rewards[0]! + 0.2);
  });
});
