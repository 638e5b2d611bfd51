import { map, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { AuthenticationError } from '../../src/client/errors.js';
import { type EvalRecord, evaluate } from '../../src/evals/index.js';
import type { RolloutHook } from '../../src/rl/index.js';
import { keepsContract, throwing } from './contract.js';
import { alternating, fakeLoop, PROMPT } from './fakeLoop.js';
import { gated } from './gated.js';
import { instantAgent, instantSampler } from './instantLoop.js';
import { marbles } from './marbles.js';

const output = () => 'said';
const inputs = map((record: EvalRecord) => record.input);

describe('evaluate', () => {
  keepsContract({
    operator: () => evaluate(instantAgent, { sampler: instantSampler, output, concurrency: 1 }),
    readsForThree: 4,
    throwing: () => evaluate(instantAgent, { sampler: instantSampler, output, id: throwing }),
  });

  it(
    'emits examples as they finish',
    marbles((m) => {
      const { sampler } = fakeLoop({ sampleMs: (asked) => (asked === 0 ? 5 : 1) });
      const source = m.cold('  abc|');
      const subs = '           ^--!';
      const expected = '       --bc-(a|)';
      const options = { sampler: sampler(0), output };
      m.expect(source.pipe(evaluate(alternating, options), inputs)).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'asks no more at once than it may, closes its gate meanwhile, and cancels what is in flight',
    marbles((m) => {
      const { sampler, log, cancelled } = fakeLoop({ sampleMs: () => 3 });
      const { source, sent } = gated(6);
      const letters = map((place: number) => 'abcdef'[place]!);
      const unsub = '          ----!';
      const options = { sampler: sampler(0), output, concurrency: 4, samples: 2 };
      m.expect(source.pipe(letters, evaluate(alternating, options), inputs), unsub).toBeObservable('---(ab)');
      m.flush();
      expect(sent()).toBe(4);
      expect(log).toHaveLength(8);
      expect(cancelled).toHaveLength(4);
    }),
  );

  it(
    'gives up on an answer after its time, and on a scorer after the same time',
    marbles((m) => {
      const { sampler } = fakeLoop({ sampleMs: (asked) => (asked === 0 ? 50 : 1) });
      const failures = map((record: EvalRecord) => record.failures.map(({ stage, name }) => `${stage} ${name}`));
      const options = {
        sampler: sampler(0),
        output,
        timeoutMs: 10,
        onFailure: 'skip' as const,
        scheduler: m.scheduler,
      };
      const source = m.cold('  a-----------b|');
      const expected = '       ----------x------------(y|)';
      const slow = { slow: () => m.cold<number>('-----------x') };
      m.expect(source.pipe(evaluate(alternating, { ...options, scorers: slow }), failures)).toBeObservable(expected, {
        x: ['rollout TimeoutError'],
        y: ['scorer TimeoutError'],
      });
    }),
  );

  it(
    'ends where every answer would fail alike',
    marbles((m) => {
      const refused = new AuthenticationError('wrong key', { status: 401, headers: {}, body: '' });
      const sampler = { sample: () => throwError(() => refused) };
      const agent: RolloutHook<string, typeof sampler> = (_, own) =>
        own.turn(PROMPT).pipe(map((turn) => ({ turns: [turn], reward: 0 })));
      const named = Object.assign(new Error('wrong key'), { name: 'AuthenticationError' });
      m.expect(m.cold('-a-b|').pipe(evaluate(agent, { sampler, output }))).toBeObservable('-#', undefined, named);
    }),
  );
});
