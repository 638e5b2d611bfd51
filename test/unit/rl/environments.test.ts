import { delay, from, lastValueFrom, map, NEVER, type Observable, of, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ByteTokenizer, getRenderer, type Message } from '../../../src/chat/index.js';
import {
  conversation,
  groupRewards,
  judge,
  type RolloutHook,
  type RolloutsOptions,
  rollouts,
  rlTool,
  singleTurn,
  type StandardSchema,
  toolUse,
  weightedRewards,
} from '../../../src/rl/index.js';
import type { SampleOptions } from '../../../src/client/SamplingClient.js';
import type { SampleResponse } from '../../../src/wire/sampling.js';
import { groupOf } from '../../marbles/fakeLoop.js';

const tokenizer = new ByteTokenizer();
const renderer = getRenderer('tinker_rx_bytes', tokenizer);
const END = tokenizer.tokenId('<|end|>');
const CALL = tokenizer.tokenId('<|tool|>');

type Said = string | readonly (string | number)[];
/** A sampler that says what it is told to, one after the other, and keeps what it was asked. */
function scripted(...answers: Said[]) {
  const asked: SampleOptions[] = [];
  let next = 0;
  const encode = (said: Said): Int32Array =>
    Int32Array.from(
      (typeof said === 'string' ? [said, END] : said).flatMap((piece) =>
        typeof piece === 'number' ? [piece] : [...tokenizer.encode(piece)],
      ),
    );
  const sampler = {
    sample: (options: SampleOptions): Observable<SampleResponse> => {
      asked.push(options);
      const sequences = Array.from({ length: options.numSamples ?? 1 }, () => {
        const tokens = encode(answers[next++ % answers.length]!).slice(
          0,
          options.samplingParams?.maxTokens ?? Infinity,
        );
        const stopReason = tokens.at(-1) === END ? ('stop' as const) : ('length' as const);
        return { stopReason, tokens, logprobs: new Float32Array(tokens.length).fill(-0.5) };
      });
      return of({ sequences, promptCacheHitTokens: 0 });
    },
  };
  return { sampler, asked };
}
type Sampler = ReturnType<typeof scripted>['sampler'];
const run = <T>(
  agent: RolloutHook<T, Sampler>,
  task: T,
  sampler: Sampler,
  options: Partial<RolloutsOptions<T, Sampler>> = {},
) => lastValueFrom(of(task).pipe(rollouts<T, Sampler>(agent, { policy: sampler, group: 1, ...options })));
const textOf = (tokens: Int32Array) => tokenizer.decode(tokens);

describe('singleTurn', () => {
  const agent = singleTurn<string, Sampler>({
    renderer,
    prompt: (word) => `Say ${word}`,
    reward: ({ text, cutOff }, word) => (cutOff ? -1 : text === word ? 1 : 0),
    samplingParams: { maxTokens: 5 },
  });
  it('asks once for a whole group', async () => {
    const { sampler, asked } = scripted('hi', 'ho', 'much too long');
    const group = await run(agent, 'hi', sampler, { group: 3 });
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({ numSamples: 3, samplingParams: { maxTokens: 5, stop: [END] } });
    expect(group.trajectories.map(({ reward }) => reward)).toStrictEqual([1, 0, -1]);
    expect(group.trajectories.map(({ metrics }) => metrics!['stop/length'])).toStrictEqual([0, 0, 1]);
  });
  it('loses only the answer whose grader throws, and tries it again alone', async () => {
    const strict = singleTurn<string, Sampler>({
      renderer,
      prompt: (word) => word,
      reward: async ({ text }) => {
        if (text === 'bad') throw new Error('cannot grade this');
        return 1;
      },
    });
    const { sampler, asked } = scripted('a', 'bad', 'c', 'd');
    const lost = await run(strict, 'x', sampler, { group: 4 });
    expect(lost.trajectories.map(({ index }) => index)).toStrictEqual([0, 2, 3]);
    expect(lost.failures).toMatchObject([{ index: 1, message: 'cannot grade this', attempts: 1 }]);
    const again = await run(strict, 'x', scripted('a', 'bad', 'c', 'd', 'good').sampler, {
      group: 4,
      onFailure: { retries: 1 },
    });
    expect(again.failures).toStrictEqual([]);
    expect(asked).toHaveLength(1);
  });
});

describe('weightedRewards', () => {
  it('adds up by weight and tells each by its name', async () => {
    const grade = weightedRewards<string, number>({
      right: (text, task) => (Number(text) === task ? 1 : 0),
      short: { weight: 0.1, score: (text) => of(-text.length) },
      seen: { weight: 0, score: () => ({ reward: 7, metrics: { more: 3 } }) },
    });
    expect(await lastValueFrom(grade('42', 42))).toStrictEqual({
      reward: 0.8,
      metrics: { right: 1, short: -2, more: 3, seen: 7 },
    });
    expect(() => weightedRewards({ bad: { weight: NaN, score: () => 1 } })).toThrow(
      'the weight of bad must be a finite number, got NaN',
    );
  });
});

describe('conversation', () => {
  const guess = conversation<string, Sampler>({
    renderer,
    start: (word) => [{ role: 'user', content: `Guess ${word.length}` }],
    reply: ({ answer }, word) =>
      answer.text === word ? { reward: 1 } : { messages: [{ role: 'user', content: 'No.' }], metrics: { wrong: 1 } },
    maxTurns: 3,
    maxTokens: 60,
  });
  it('extends each prompt by what was sampled, token for token', async () => {
    const { sampler, asked } = scripted('cat', 'dog');
    const { trajectories } = await run(guess, 'dog', sampler);
    const [first, second] = trajectories[0]!.turns;
    const seen = [...first!.prompt.toInts(), ...first!.sequence.tokens];
    expect([...second!.prompt.toInts()].slice(0, seen.length)).toStrictEqual(seen);
    expect(textOf(asked[1]!.prompt.toInts())).toContain('No.');
    expect(trajectories[0]).toMatchObject({ reward: 1, metrics: { wrong: 1, 'stop/done': 1 } });
  });
  it('keeps what was sampled also where the renderer would write it otherwise', async () => {
    // The renderer writes a tool call as JSON with blanks; what is sampled here has none.
    const agent = conversation<string, Sampler>({
      renderer,
      start: () => [{ role: 'user', content: 'go' }],
      reply: ({ turns }) => (turns.length > 1 ? undefined : { messages: [{ role: 'tool', content: '3' }] }),
    });
    const { sampler } = scripted([CALL, '{"name":"add","arguments":{"a":1}}', END], 'done');
    const { trajectories } = await run(agent, '', sampler);
    const [first, second] = trajectories[0]!.turns;
    const seen = [...first!.prompt.toInts(), ...first!.sequence.tokens];
    expect([...second!.prompt.toInts()].slice(0, seen.length)).toStrictEqual(seen);
    const rest = second!.prompt.toInts().slice(seen.length);
    expect([...rest]).toStrictEqual([CALL, ...tokenizer.encode('3'), END, tokenizer.tokenId('<|assistant|>')]);
  });
  it.each([
    ['max_turns', scripted('a'), {}],
    ['length', scripted('a long answer'), { samplingParams: { maxTokens: 4 } }],
    ['max_tokens', scripted('a very long answer indeed that does not fit any more, at all'), {}],
    ['max_sampled_tokens', scripted('aaaa'), { maxSampledTokens: 5 }],
    ['max_tokens', scripted('aaaaaaaaaaaaaaaaaaaa'), { maxTokens: 36 }],
    ['timeout', scripted('a'), { maxMs: 1 }],
  ] as const)('stops at %s with what was said so far', async (stop, { sampler }, limits) => {
    let now = 0;
    const scheduler = { now: () => now++ * 2, schedule: () => NEVER.subscribe() };
    const agent = conversation<string, Sampler>({
      renderer,
      start: () => [{ role: 'user', content: 'go' }],
      reply: () => ({ messages: [{ role: 'user', content: 'more' }] }),
      reward: () => 1,
      noRewardAtLimit: true,
      ...{ maxTurns: 3, maxTokens: 60, ...limits, scheduler },
    });
    const { trajectories, failures } = await run(agent, '', sampler);
    expect(failures).toStrictEqual([]);
    expect(trajectories[0]).toMatchObject({ reward: 0, metrics: { [`stop/${stop}`]: 1 } });
  });
  it('masks an answer that cannot be read, where asked to', async () => {
    const agent = conversation<string, Sampler>({
      renderer,
      start: () => [{ role: 'user', content: 'go' }],
      reply: () => undefined,
      samplingParams: { maxTokens: 2 },
      maskParseErrors: true,
    });
    const { trajectories } = await run(agent, '', scripted('abc').sampler);
    expect(trajectories[0]!.turns.map(({ masked }) => masked)).toStrictEqual([true]);
  });
});

describe('toolUse', () => {
  /** A validator by hand, as Standard Schema describes it. */
  const numbers: StandardSchema<{ a: number; b: number }> = {
    '~standard': {
      version: 1,
      vendor: 'by hand',
      validate: (value) => {
        const { a, b } = value as { a: unknown; b: unknown };
        return typeof a === 'number' && typeof b === 'number'
          ? { value: { a, b } }
          : { issues: [{ message: 'expected a number', path: ['a'] }] };
      },
    },
  };
  const add = rlTool({
    description: 'Adds.',
    inputSchema: numbers,
    parameters: { type: 'object' },
    execute: ({ a, b }) => (a > 100 ? Promise.reject(new Error('too large')) : of(a + b).pipe(delay(0))),
  });
  const agent = toolUse<string, Sampler>({
    renderer,
    tools: { add },
    start: (question) => [{ role: 'user', content: question }],
    reward: ({ answer }) => (answer.text === '3' ? 1 : 0),
    maxToolCalls: 3,
    maxToolErrors: 1,
  });
  const call = (text: string): Said => [CALL, text, END];
  const messagesOf = async (...answers: Said[]) => {
    const { trajectories } = await run(agent, '1 + 2?', scripted(...answers).sampler);
    const [{ logs, ...rest }] = trajectories as [(typeof trajectories)[0]];
    return {
      ...rest,
      said: (logs!['messages'] as Message[]).filter(({ role }) => role === 'tool').map(({ content }) => content),
    };
  };

  it('makes calls until there is none, and merges the turns', async () => {
    const { said, reward, metrics, turns } = await messagesOf(
      call('{"name": "add", "arguments": {"a": 1, "b": 2}}'),
      '3',
    );
    expect(said).toStrictEqual(['3']);
    expect(reward).toBe(1);
    expect(metrics).toStrictEqual({ tool_calls: 1, tool_errors: 0, 'stop/done': 1 });
    const seen = [...turns[0]!.prompt.toInts(), ...turns[0]!.sequence.tokens];
    expect([...turns[1]!.prompt.toInts()].slice(0, seen.length)).toStrictEqual(seen);
    expect(textOf(turns[0]!.prompt.toInts())).toContain('"description": "Adds."');
  });
  it.each([
    ['{"name": "add", "arguments": {"a": "x"}}', 'Error: bad arguments: a: expected a number'],
    ['{"name": "sub", "arguments": {}}', 'Error: there is no tool sub; there are add'],
    ['{"name": "add", "arguments": {"a": 101, "b": 1}}', 'Error: too large'],
    ['{"name": "add", "argu', /^Error: the call could not be read: /],
  ])('answers %s with a tool message that says what is wrong', async (text, message) => {
    const { said, metrics } = await messagesOf(call(text), '3');
    expect(said).toStrictEqual([typeof message === 'string' ? message : expect.stringMatching(message)]);
    expect(metrics).toMatchObject({ tool_errors: 1, 'stop/done': 1 });
  });
  it('ends after too many bad calls in a row, and after too many calls', async () => {
    const bad = call('{"name": "sub", "arguments": {}}');
    expect((await messagesOf(bad)).metrics).toStrictEqual({ tool_calls: 2, tool_errors: 2, 'stop/tool_errors': 1 });
    const good = call('{"name": "add", "arguments": {"a": 1, "b": 2}}');
    expect((await messagesOf(good)).metrics).toStrictEqual({ tool_calls: 3, tool_errors: 0, 'stop/max_tool_calls': 1 });
  });
  it('wants a description of the arguments that a model can read', () => {
    const tools = { add: { ...add, parameters: undefined } } as never;
    expect(() => toolUse({ renderer, tools, start: () => [] })).toThrow(
      'tool add: schemas of by hand have no JSON Schema that can be read here: pass it as parameters',
    );
  });
});

describe('groupRewards', () => {
  it('adds to the rewards, in the order of the groups', async () => {
    const groups = await lastValueFrom(
      from([groupOf(0, [1, 0]), groupOf(1, [1, 0])]).pipe(
        groupRewards((trajectories, task) =>
          of(trajectories.map(({ reward }) => 2 * reward)).pipe(delay(task === 'task 0' ? 5 : 0)),
        ),
        map(({ trajectories }) => trajectories.map(({ reward, metrics }) => [reward, metrics])),
        toArray(),
      ),
    );
    const expected = [
      [3, { group_reward: 2 }],
      [0, { group_reward: 0 }],
    ];
    expect(groups).toStrictEqual([expected, expected]);
  });
  it.each([
    [() => [1], '2 trajectories need as many rewards, got 1'],
    [() => [1, NaN], 'the reward of trajectory 1 is NaN; it must be a finite number, true or false'],
    [
      () => {
        throw new Error('no');
      },
      'no',
    ],
  ])('costs only the group that cannot be judged', async (reward, message) => {
    const group = await lastValueFrom(of(groupOf(0, [1, 0])).pipe(groupRewards(reward)));
    expect(group).toMatchObject({
      viable: false,
      failures: [{ message: `the group could not be judged: ${message}` }],
    });
  });
});

describe('judge', () => {
  const group = groupOf(0, [0, 0]);
  const prompt = renderer.buildGenerationPrompt([{ role: 'user', content: 'A rhyme?' }]);
  const trajectories = group.trajectories.map((each, index) => ({
    ...each,
    turns: [
      { prompt, sequence: { stopReason: 'stop' as const, tokens: tokenizer.encode(index === 0 ? 'moon' : 'spoon') } },
    ],
  }));
  it('shows what is shared once, and reads the scores', async () => {
    const { sampler, asked } = scripted('The second. {"scores": [0.2, 0.9]}');
    const scores = judge({ sampler, renderer, criteria: 'Rhymes.' })(trajectories, '');
    expect(await lastValueFrom(scores as Observable<readonly number[]>)).toStrictEqual([0.2, 0.9]);
    const text = textOf(asked[0]!.prompt.toInts());
    expect(text.split('A rhyme?')).toHaveLength(2);
    expect(text).toContain('<try 1>\nmoon\n</try 1>\n\n<try 2>\nspoon\n</try 2>');
  });
  it('asks again, with another seed, where the judgement cannot be read, and gives up after its retries', async () => {
    const { sampler, asked } = scripted('Hm.', '{"scores": [0.2, 1.9]}', '{"scores": [0, 1]}');
    const scores = () =>
      lastValueFrom(
        judge({ sampler, renderer, criteria: 'Rhymes.' })(trajectories, '') as Observable<readonly number[]>,
      );
    expect(await scores()).toStrictEqual([0, 1]);
    expect(new Set(asked.map(({ samplingParams }) => samplingParams!.seed)).size).toBe(3);
    const never = judge({ sampler: scripted('Hm.').sampler, renderer, criteria: 'Rhymes.' })(trajectories, '');
    await expect(lastValueFrom(never as Observable<readonly number[]>)).rejects.toThrow(
      'the judge gave no list of 2 scores',
    );
  });
});
