import { defer, merge, NEVER, of, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { SharedBudget } from '../../../src/client/connection/SharedBudget.js';
import { marbles } from '../marbles.js';

describe('SharedBudget', () => {
  // prettier-ignore
  it('admits while its balance is not negative, so that one may overshoot, and then blocks', marbles((m) => {
    const budget = new SharedBudget({ budget: 10 });
    const work = m.cold('  ---r|');
    const subs = ['        ^---!', '^---!', '----^---!'];
    // 6 leaves 4; 100 overshoots; the last waits until the balance is back above zero.
    const held = merge(budget.run(6, work), budget.run(100, work), budget.run(1, work));
    m.expect(held).toBeObservable('---(rr)r|');
    m.expect(work).toHaveSubscriptions(subs);
  }));

  // prettier-ignore
  it('admits at a balance of exactly zero', marbles((m) => {
    const budget = new SharedBudget({ budget: 10 });
    const work = m.cold('  --|');
    const subs = ['        ^-!', '^-!'];
    m.expect(merge(budget.run(10, work), budget.run(5, work))).toBeObservable('--|');
    m.expect(work).toHaveSubscriptions(subs);
  }));

  // prettier-ignore
  it('gives back on failure and on unsubscribing, and forgets who leaves the line', marbles((m) => {
    const budget = new SharedBudget({ budget: Infinity, concurrency: 1 });
    m.expect(budget.run(1, m.cold('--#'))).toBeObservable('      --#');
    m.expect(budget.run(1, NEVER), '                             ----!').toBeObservable('------');
    m.expect(budget.run(1, NEVER), '                             ---!').toBeObservable('------');
    m.expect(budget.run(1, m.cold('-a|'))).toBeObservable('      -----a|');
    m.flush();
    expect(budget.use(0)).toEqual({ inUse: 0, size: 0, waiting: 0 });
  }));

  it('fails with what the work throws, and gives back', () => {
    const budget = new SharedBudget({ budget: Infinity, concurrency: 1 });
    const errors: unknown[] = [];
    const thrower = defer((): never => {
      throw new Error('at once');
    });
    budget.run(1, thrower).subscribe({ error: (error: unknown) => errors.push(error) });
    budget
      .run(
        1,
        throwError(() => new Error('soon')),
      )
      .subscribe({ error: (error: unknown) => errors.push(error) });
    expect(errors).toEqual([new Error('at once'), new Error('soon')]);
    expect(budget.use(0).inUse).toBe(0);
  });

  it('serves a long line of work that is done at once without nesting', () => {
    const budget = new SharedBudget({ budget: Infinity, concurrency: 1 });
    const seen: number[] = [];
    const blocking = budget.run(1, NEVER).subscribe();
    for (let index = 0; index < 10_000; index++) budget.run(1, of(index)).subscribe((value) => seen.push(value));
    expect(budget.use(1, 'calls')).toEqual({ inUse: 1, size: 1, waiting: 10_000 });
    blocking.unsubscribe();
    expect(seen).toEqual(Array.from({ length: 10_000 }, (_, index) => index));
  });
});
