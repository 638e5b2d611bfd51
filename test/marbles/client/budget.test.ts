import { merge, NEVER, of, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { Budget } from '../../../src/client/connection/Budget.js';
import { marbles } from '../marbles.js';

describe('Budget', () => {
  // prettier-ignore
  it('admits while its balance is not negative, so that one may overshoot, and then blocks', marbles((m) => {
    const budget = new Budget(10, 'soft');
    const work = m.cold('  ---r|');
    const subs = ['        ^---!', '^---!', '----^---!'];
    // 6 leaves 4; 100 overshoots; the last waits until the balance is back above zero.
    const held = merge(budget.hold(6, () => work), budget.hold(100, () => work), budget.hold(1, () => work));
    m.expect(held).toBeObservable('---(rr)r|');
    m.expect(work).toHaveSubscriptions(subs);
  }));

  // prettier-ignore
  it('admits at a balance of exactly zero', marbles((m) => {
    const budget = new Budget(10, 'soft');
    const work = m.cold('  --|');
    const subs = ['        ^-!', '^-!'];
    m.expect(merge(budget.hold(10, () => work), budget.hold(5, () => work))).toBeObservable('--|');
    m.expect(work).toHaveSubscriptions(subs);
  }));

  // prettier-ignore
  it('as a hard one admits only what fits, and nobody overtakes', marbles((m) => {
    const budget = new Budget(2, 'hard');
    const long = m.cold('  ----|');
    const short = m.cold(' -|');
    const held = merge(budget.hold(1, () => long), budget.hold(2, () => long), budget.hold(1, () => short));
    m.expect(held).toBeObservable('---------|');
    m.expect(long).toHaveSubscriptions(['^---!', '----^---!']);
    m.expect(short).toHaveSubscriptions('--------^!');
  }));

  // prettier-ignore
  it('asks for the weight when it admits, not when it is asked', marbles((m) => {
    const budget = new Budget(1, 'hard');
    const work = m.cold('  --|');
    let weight = 1;
    m.cold('               -x').subscribe(() => (weight = 0));
    const held = merge(budget.hold(1, () => work), budget.hold(() => weight, () => work), budget.hold(1, () => work));
    m.expect(held).toBeObservable('----|');
    m.expect(work).toHaveSubscriptions(['^-!', '--^-!', '--^-!']);
  }));

  // prettier-ignore
  it('gives back on failure and on unsubscribing, and forgets who leaves the line', marbles((m) => {
    const budget = new Budget(1, 'hard');
    m.expect(budget.hold(1, () => m.cold('--#'))).toBeObservable('      --#');
    m.expect(budget.hold(1, () => NEVER), '                             ----!').toBeObservable('------');
    m.expect(budget.hold(1, () => NEVER), '                             ---!').toBeObservable('------');
    m.expect(budget.hold(1, () => m.cold('-a|'))).toBeObservable('      -----a|');
    m.flush();
    expect(budget.inUse).toBe(0);
    expect(budget.waiting).toBe(0);
  }));

  it('fails with what the work throws, and gives back', () => {
    const budget = new Budget(1, 'hard');
    const errors: unknown[] = [];
    const thrower = (): never => {
      throw new Error('at once');
    };
    budget.hold(1, thrower).subscribe({ error: (error: unknown) => errors.push(error) });
    budget
      .hold(1, () => throwError(() => new Error('soon')))
      .subscribe({ error: (error: unknown) => errors.push(error) });
    expect(errors).toEqual([new Error('at once'), new Error('soon')]);
    expect(budget.inUse).toBe(0);
  });

  it('serves a long line of work that is done at once without nesting', () => {
    const budget = new Budget(1, 'hard');
    const seen: number[] = [];
    const blocking = budget.hold(1, () => NEVER).subscribe();
    for (let index = 0; index < 10_000; index++) budget.hold(1, () => of(index)).subscribe((value) => seen.push(value));
    expect(budget.waiting).toBe(10_000);
    blocking.unsubscribe();
    expect(seen).toEqual(Array.from({ length: 10_000 }, (_, index) => index));
  });
});
