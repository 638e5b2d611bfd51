import { merge, NEVER, of, Subject, throwError } from 'rxjs';
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

describe('a budget before another', () => {
  /** Two clients, each with its own budget, before two slots that both share. */
  const house = () => {
    const blocked = new Set<Budget>();
    const slots: Budget = new Budget(2, 'hard', {
      onRoom: () => {
        for (const client of blocked) {
          blocked.delete(client);
          client.serve();
          return true;
        }
        return false;
      },
    });
    const door = {
      get isOpen() {
        return slots.hasRoom;
      },
      wait: (client: Budget) => void blocked.add(client),
    };
    return { slots, clients: [new Budget(10, 'hard', { door }), new Budget(10, 'hard', { door })] as const };
  };

  it('has nothing made for what waits behind it, and lets each client in by turns', () => {
    const { slots, clients } = house();
    const made: string[] = [];
    const over = new Map<string, Subject<void>>();
    const work = (name: string) => () => {
      made.push(name);
      return slots.hold(1, () => {
        const end = new Subject<void>();
        over.set(name, end);
        return end;
      });
    };
    for (const name of ['a1', 'a2', 'a3', 'a4']) clients[0].hold(1, work(name)).subscribe();
    for (const name of ['b1', 'b2']) clients[1].hold(1, work(name)).subscribe();
    expect(made).toStrictEqual(['a1', 'a2']);
    expect([slots.waiting, clients[0].atDoor, clients[1].atDoor]).toStrictEqual([0, 2, 2]);
    over.get('a1')!.complete();
    over.get('a2')!.complete();
    expect(made).toStrictEqual(['a1', 'a2', 'a3', 'b1']);
    over.get('b1')!.complete();
    over.get('a3')!.complete();
    expect(made).toStrictEqual(['a1', 'a2', 'a3', 'b1', 'a4', 'b2']);
  });

  it('passes over who has left while waiting at the door', () => {
    const { slots, clients } = house();
    const made: string[] = [];
    const end = new Subject<void>();
    const work = (name: string) => () => {
      made.push(name);
      return slots.hold(1, () => end);
    };
    const [, , left] = ['a1', 'a2', 'a3', 'a4'].map((name) => clients[0].hold(1, work(name)).subscribe());
    left!.unsubscribe();
    end.complete();
    expect(made).toStrictEqual(['a1', 'a2', 'a4']);
  });
});
