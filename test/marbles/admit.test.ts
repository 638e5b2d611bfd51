import { concatMap, from, NEVER, of, take, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { concatMapAhead } from '../../src/operators/flow/concatMapAhead.js';
import { LivePolicy, type RlEvent } from '../../src/rl/index.js';
import { admit } from '../../src/rl/pacing/admit.js';
import { firehose, keepsContract } from './contract.js';
import { gated } from './gated.js';
import { marbles } from './marbles.js';

const open = () => {
  const policy = new LivePolicy<string>();
  policy.publish('weights', 0);
  return policy;
};

describe('admit', () => {
  keepsContract({ operator: () => admit(open()), readsForThree: 3 });

  it(
    'lets nothing through before there are weights, then as many as the pace allows',
    marbles((m) => {
      const policy = new LivePolicy<string>();
      policy.pace.start(2);
      const source = m.cold('  abcde|');
      const subs = '           ^----!';
      // Weights at 3; one is done with at 6, and three at 8.
      const expected = '       ---(ab)c-(de|)';
      timer(3).subscribe(() => policy.publish('weights', 0));
      timer(7).subscribe(() => policy.pace.release(1));
      timer(9).subscribe(() => policy.pace.release(3));
      m.expect(source.pipe(admit(policy))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'says what it waits for, once for each wait',
    marbles((m) => {
      const policy = new LivePolicy<string>();
      policy.pace.start(2);
      const events: RlEvent[] = [];
      const onEvent = (event: RlEvent) => events.push(event);
      timer(1).subscribe(() => policy.publish('weights', 0));
      timer(2).subscribe(() => policy.pace.release(1));
      timer(3).subscribe(() => policy.pace.release(2));
      const slow = concatMapAhead((value: string) => timer(10).pipe(concatMap(() => of(value))), { ahead: 2 });
      m.expect(from('abcdefgh').pipe(admit(policy, onEvent), slow), '------!').toBeObservable('-------');
      m.flush();
      expect(
        events.map((event) => event.type === 'rl-waiting' && `${event.for} ${event.admitted} ${event.done}`),
      ).toStrictEqual(['policy 0 0', 'training 2 0', 'training 3 1', 'concurrency 3 3']);
    }),
  );

  it(
    'reads one value ahead, so that the end is known with the last value',
    marbles((m) => {
      const policy = open();
      policy.pace.start(2);
      const { source, sent } = gated(3);
      const totals: unknown[] = [];
      const result = source.pipe(admit(policy));
      const expected = '       (01)-(2|)';
      timer(5).subscribe(() => policy.pace.release(1));
      m.expect(result).toBeObservable(expected, [0, 1, 2] as never);
      timer(2).subscribe(() => totals.push(sent(), policy.pace.total));
      m.flush();
      expect(totals).toStrictEqual([3, undefined]);
      expect(policy.pace.total).toBe(3);
    }),
  );

  it(
    'passes an error at once, and waits with a silent source',
    marbles((m) => {
      const policy = open();
      policy.pace.start(1);
      m.expect(m.cold('ab#').pipe(admit(policy))).toBeObservable('a-#');
      m.expect(NEVER.pipe(admit(open())), '--!').toBeObservable('---');
    }),
  );

  it('stops a synchronous source in time', () => {
    const { source, read } = firehose();
    source.pipe(admit(open()), take(3)).subscribe();
    expect(read()).toBeLessThanOrEqual(4);
  });
});
