/** Operators that run an agent over tasks, whatever delays, failures and limits chance chooses. */
import fc from 'fast-check';
import { defer, finalize, map, type Observable, timer, type VirtualTimeScheduler } from 'rxjs';
import { expect, it } from 'vitest';
import { evaluate } from '../../../src/evals/index.js';
import type { SampleOptions, SampleResponse } from '../../../src/index.js';
import { rollouts, type RolloutHook } from '../../../src/rl/index.js';
import { PROMPT } from '../../marbles/fakeLoop.js';
import { clockOf, few, gaps, leaveAt, run, RUNS, spaced, upTo } from './virtual.js';

const moment = fc.integer({ min: 0, max: 120 });

/** A sampler that takes these times in turn; a sample with a time of 0 fails. Counts what is under way. */
function samplerOf(takesMs: readonly number[], clock: VirtualTimeScheduler) {
  const asked = { all: 0, open: 0, most: 0 };
  const sample = (_: SampleOptions): Observable<SampleResponse> =>
    defer(() => {
      const tookMs = takesMs[asked.all++ % takesMs.length]!;
      asked.most = Math.max(asked.most, ++asked.open);
      return timer(tookMs, clock).pipe(
        map((): SampleResponse => {
          if (tookMs === 0) throw new Error('no answer');
          const sequence = { tokens: Int32Array.of(104, 105), logprobs: Float32Array.of(-0.5, -0.5) };
          return { promptCacheHitTokens: 0, sequences: [{ stopReason: 'stop', ...sequence }] };
        }),
        finalize(() => asked.open--),
      );
    });
  return { asked, sampler: { sample } };
}
type Sampler = ReturnType<typeof samplerOf>['sampler'];
const agent: RolloutHook<string, Sampler> = (_, policy, { index }) =>
  policy.turn(PROMPT).pipe(map((turn) => ({ turns: [turn], reward: index })));

interface Told {
  readonly task: string;
  readonly tries: readonly number[];
}

const OPERATORS: readonly (readonly [
  string,
  (
    sampler: Sampler,
    size: number,
    concurrency: number,
    clock: VirtualTimeScheduler,
  ) => (tasks: Observable<string>) => Observable<Told>,
])[] = [
  [
    'rollouts',
    (policy, group, concurrency, scheduler) => (tasks) =>
      tasks.pipe(
        rollouts(agent, { policy, group, concurrency, scheduler }),
        map(({ task, trajectories, failures }) => ({
          task,
          tries: [...trajectories, ...failures].map(({ index }) => index),
        })),
      ),
  ],
  [
    'evaluate',
    (sampler, samples, concurrency, scheduler) => (tasks) =>
      tasks.pipe(
        evaluate(agent, { sampler, samples, concurrency, scheduler, onFailure: 'skip', id: (task) => task }),
        map(({ id, samples: answers, failures }) => ({
          task: id,
          tries: [...answers, ...failures].map(({ index }) => index),
        })),
      ),
  ],
];

it.each(OPERATORS)('%s tries every task as often as told, within its limit; left, it asks no more', (_, operator) =>
  fc.assert(
    fc.property(
      fc.tuple(gaps, fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 12 })),
      ...[few, fc.integer({ min: 1, max: 12 }), moment],
      ([all, takesMs], size, concurrency, leftMs) => {
        const work = (clock: VirtualTimeScheduler) => {
          const running = { now: 0 };
          const { asked, sampler } = samplerOf(takesMs, clock);
          const stream = spaced(all, clock, running).pipe(
            map((id) => `task ${id}`),
            operator(sampler, size, concurrency, clock),
          );
          return { asked, running, stream };
        };
        const clock = clockOf();
        const { asked, running, stream } = work(clock);
        const { values, end } = run(stream, clock);
        expect(end).toBe('complete');
        expect(values.map(({ task }) => task).sort()).toStrictEqual(
          upTo(all.length)
            .map((id) => `task ${id}`)
            .sort(),
        );
        for (const { tries } of values) expect([...tries].sort((a, b) => a - b)).toStrictEqual(upTo(size));
        expect(asked).toMatchObject({ all: all.length * size, open: 0 });
        // A group always runs whole.
        expect(asked.most).toBeLessThanOrEqual(Math.max(size, concurrency));
        expect(running.now).toBe(0);

        const other = clockOf();
        const left = work(other);
        let before = 0;
        leaveAt(left.stream, leftMs, other, () => (before = left.asked.all));
        expect(left.asked).toMatchObject({ all: before, open: 0 });
        expect(left.running.now).toBe(0);
      },
    ),
    RUNS,
  ),
);
