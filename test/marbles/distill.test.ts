import { from, map, type Observable, of, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ByteTokenizer, getRenderer } from '../../src/chat/index.js';
import { distill, type RlStep } from '../../src/rl/index.js';
import type { ModelInput } from '../../src/wire/modelInput.js';
import type { TensorData } from '../../src/wire/tensor.js';
import { keepsContract } from './contract.js';
import { fakeLoop } from './fakeLoop.js';
import { instantTrainer } from './instantLoop.js';
import { marbles } from './marbles.js';

const renderer = getRenderer('tinker_rx_bytes', new ByteTokenizer());
/** Finds every token as likely as this. */
const teacherOf = (logprob: number, wait: () => Observable<unknown> = () => of(0)) => ({
  computeLogprobs: (prompt: ModelInput) => wait().pipe(map(() => new Float32Array(prompt.length).fill(logprob))),
});
const options = { renderer, group: 2, groupsPerBatch: 1 };

describe('distill', () => {
  keepsContract({
    operator: () => distill<string, never>(instantTrainer as never, { ...options, teacher: teacherOf(-1.5) }),
    readsForThree: 5,
  });

  it(
    'waits for the teacher before it trains, and tells how far apart the two are',
    marbles((m) => {
      const { trainer } = fakeLoop({ stepMs: 4, sampleMs: () => 2 });
      // Weights at 1, answers at 3, the teacher's word at 6, the step at 10.
      const source = m.cold('  (a|)');
      const expected = '       ----------(x|)';
      const away = map(({ metrics }: RlStep) => metrics['env/all/reward/total']);
      const result = source.pipe(distill(trainer, { ...options, teacher: teacherOf(-1.5, () => timer(3)) }), away);
      m.expect(result).toBeObservable(expected, { x: 0 });
    }),
  );

  it(
    'trains on −c · (log p − log t) of every sampled token, and on nothing else',
    marbles((m) => {
      const { trainer } = fakeLoop();
      const sent: number[] = [];
      const watching = {
        ...trainer,
        forwardBackward: (...args: Parameters<typeof trainer.forwardBackward>) => {
          for (const { lossFnInputs } of args[0])
            sent.push(...((lossFnInputs['advantages'] as TensorData).data as Float32Array).subarray(-3));
          return trainer.forwardBackward(...args);
        },
      };
      const steps: RlStep[] = [];
      from(['say'])
        .pipe(distill(watching, { ...options, group: 1, teacher: teacherOf(-1.5), coefficient: 2 }))
        .subscribe((step) => steps.push(step));
      m.flush();
      const { sequence } = steps[0]!.groups[0]!.trajectories[0]!.turns[0]!;
      const expected = Array.from(sequence.logprobs!, (logprob) => -2 * (logprob + 1.5));
      // The last thing read is not trained on.
      expect(sent).toStrictEqual([0, ...expected]);
    }),
  );

  it(
    'a teacher that fails costs its answers, and the stream goes on',
    marbles((m) => {
      const { trainer } = fakeLoop();
      let asked = 0;
      const teacher = {
        computeLogprobs: (prompt: ModelInput) =>
          asked++ < 2 ? throwError(() => new Error('no')) : of(new Float32Array(prompt.length).fill(-1)),
      };
      const failures: number[][] = [];
      from(['a', 'b'])
        .pipe(distill(trainer, { ...options, groupsPerBatch: 2, teacher }))
        .subscribe(({ groups }) => failures.push(groups.map((group) => group.failures.length)));
      m.flush();
      expect(failures).toStrictEqual([[2, 0]]);
    }),
  );
});
