/** Types for reward modules, and the text of what was sampled. */
import { expect, expectTypeOf, it } from 'vitest';
import { firstValueFrom, from, of, toArray } from 'rxjs';
import { ByteTokenizer, getRenderer } from 'tinker-rx/chat';
import { type Answer, conversation, type Policy, type Reward, singleTurn } from 'tinker-rx/rl';

const renderer = getRenderer('tinker_rx_bytes', new ByteTokenizer());
const tokens = Int32Array.from([...renderer.tokenizer.encode('red'), renderer.getStopSequences()[0] as number]);
const policy = {
  turn: (prompt: unknown) =>
    of({ prompt, sequence: { tokens, logprobs: new Float32Array(tokens.length), stopReason: 'stop' } }),
} as unknown as Policy;
const context = { signal: new AbortController().signal, seed: 0, index: 0 };
const task = { answer: 'red' };

it('a reward module is typed by Reward', async () => {
  const reward: Reward<typeof task> = ({ text, cutOff }, { answer }) => (!cutOff && text === answer ? 1 : 0);
  expectTypeOf<Parameters<Reward>[0]>().toEqualTypeOf<Answer>();
  const agent = singleTurn<typeof task>({ renderer, prompt: () => 'Which?', reward });
  const rollout = await firstValueFrom(from(agent(task, policy, context)).pipe(toArray()));
  expect(rollout).toMatchObject([{ reward: 1 }]);
});

it('a rollout of a ready environment has its text', async () => {
  const one = singleTurn<typeof task>({ renderer, prompt: () => 'Which?', reward: () => 0 });
  const more = conversation<typeof task>({
    renderer,
    start: () => [{ role: 'user', content: 'Which?' }],
    reply: () => undefined,
  });
  for (const agent of [one, more])
    expect(await firstValueFrom(from(agent(task, policy, context)))).toMatchObject({ text: 'red' });
});
