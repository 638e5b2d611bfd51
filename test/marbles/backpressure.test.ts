import { from, NEVER, of, range, Subject } from 'rxjs';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { backpressure$, type BackpressureEvent } from '../../src/operators/pressure/backpressure.js';
import { concatMapAhead } from '../../src/operators/flow/concatMapAhead.js';
import { forgetWarnings } from '../../src/operators/pressure/shared/backpressureEvents.js';
import { interleave } from '../../src/operators/data/interleave.js';
import { mergeMapWeighted } from '../../src/operators/flow/mergeMapWeighted.js';
import { gated } from './gated.js';

const page = 'docs/backpressure.md#where-it-ends';
const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
beforeEach(() => {
  // Other files of this process may have made them warn already.
  forgetWarnings();
  warn.mockClear();
});
afterAll(() => warn.mockRestore());

function told(run: () => void): BackpressureEvent[] {
  const events: BackpressureEvent[] = [];
  const listening = backpressure$.subscribe((event) => events.push(event));
  run();
  listening.unsubscribe();
  return events;
}

describe('backpressure$', () => {
  it.each([
    ['concatMapAhead', () => range(0, 5000).pipe(concatMapAhead(() => NEVER, { ahead: 0 }))],
    ['mergeMapWeighted', () => range(0, 5000).pipe(mergeMapWeighted(() => NEVER, { weight: () => 1, budget: 0 }))],
    ['interleave', () => interleave([{ source: NEVER }, { source: range(0, 5000) }])],
  ])('tells when a queue of %s grows, at 1000 and when it has doubled, and warns once', (operator, stream) => {
    const grown = (queued: number) => ({ type: 'queue-grown', operator, queued, page });
    const run = () => stream().subscribe().unsubscribe();
    expect(told(run)).toStrictEqual([1000, 2000, 4000].map(grown));
    expect(told(run)).toHaveLength(3);
    expect(warn).toHaveBeenCalledTimes(1);
    const [message] = warn.mock.calls[0]!;
    expect(message).toContain(`${operator} has 1000 values waiting`);
    expect(message).toContain(page);
  });

  it('tells of an inner that runs ahead and does not pause', () => {
    const inners = [new Subject<number>(), range(0, 1500)];
    const run = () =>
      from(inners)
        .pipe(concatMapAhead((inner) => inner, { ahead: 1 }))
        .subscribe()
        .unsubscribe();
    expect(told(run)).toStrictEqual([{ type: 'queue-grown', operator: 'concatMapAhead', queued: 1000, page }]);
  });

  it('says nothing of queues that stay short', () => {
    const run = () => {
      gated(5000)
        .source.pipe(concatMapAhead(() => NEVER, { ahead: 500 }))
        .subscribe()
        .unsubscribe();
      range(0, 999)
        .pipe(mergeMapWeighted((value) => (value === 0 ? NEVER : of(value)), { weight: () => 1, budget: 0 }))
        .subscribe()
        .unsubscribe();
    };
    expect(told(run)).toStrictEqual([]);
    expect(warn).not.toHaveBeenCalled();
  });
});
