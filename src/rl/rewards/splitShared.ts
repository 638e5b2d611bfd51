import type { Trajectory } from '../sampling/rollout.js';

/** What all trajectories begin with, and what each has beside it, as tokens. Images and audio are left out. */
export function splitShared(trajectories: readonly Trajectory[]): {
  readonly shared: Int32Array;
  readonly parts: readonly Int32Array[];
} {
  const all = trajectories.map(({ turns }) => {
    const { prompt, sequence } = turns.at(-1)!;
    return Int32Array.from([
      ...prompt.chunks.flatMap((chunk) => (chunk.type === 'encoded_text' ? Array.from(chunk.tokens) : [])),
      ...sequence.tokens,
    ]);
  });
  const [first] = all;
  let length = Math.min(...all.map((tokens) => tokens.length));
  // What was sampled first is never shared, so that equal answers are still shown.
  length = Math.min(length, trajectories[0]!.turns[0]!.prompt.length);
  let shared = 0;
  while (shared < length && all.every((tokens) => tokens[shared] === first![shared])) shared++;
  return { shared: first!.slice(0, shared), parts: all.map((tokens) => tokens.slice(shared)) };
}
