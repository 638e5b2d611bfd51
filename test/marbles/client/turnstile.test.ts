import { concatMap, defer, merge, of, tap, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { Turnstile } from '../../../src/client/training/Turnstile.js';
import { marbles } from '../marbles.js';

describe('Turnstile', () => {
  // prettier-ignore
  it('starts a turn when the one before it is released, while its result is still awaited', marbles((m) => {
    const turns = new Turnstile();
    const send = m.cold('    --s|');
    const result = m.cold('  -----r|');
    const subsOfSend = ['    ^--!', '--^--!'];
    const expected = '       -------a-b|';
    const turn = (name: string) =>
      turns.take(({ release }) => send.pipe(tap(release), concatMap(() => result), concatMap(() => of(name))));
    const first = turn('a');
    const second = turn('b');
    m.expect(merge(first, second)).toBeObservable(expected);
    m.expect(send).toHaveSubscriptions(subsOfSend);
  }));

  // prettier-ignore
  it('keeps the order of the calls when they are subscribed to in another', marbles((m) => {
    const turns = new Turnstile();
    const first = turns.take(() => m.cold('-a|'));
    const second = turns.take(() => m.cold('-b|'));
    const expected = '                      -a-b|';
    m.expect(merge(second, first)).toBeObservable(expected);
  }));

  // prettier-ignore
  it('goes on after a turn that fails', marbles((m) => {
    const turns = new Turnstile();
    const first: Observable<string> = turns.take(() => m.cold<string>('--#'));
    const second = turns.take(() => m.cold('                           b|'));
    m.expect(first).toBeObservable('                                   --#');
    m.expect(second).toBeObservable('                                  --b|');
  }));

  // prettier-ignore
  it('goes on after a turn whose work throws', marbles((m) => {
    const turns = new Turnstile();
    const first = turns.take<string>(() => { throw new Error('no work'); });
    const second = turns.take(() => m.cold('-b|'));
    m.expect(first).toBeObservable('        #', {}, new Error('no work'));
    m.expect(second).toBeObservable('       -b|');
  }));

  // prettier-ignore
  it('passes over a turn that is given up while it waits, and never runs its work', marbles((m) => {
    const turns = new Turnstile();
    let ran = false;
    const first = turns.take(() => m.cold(' ---a|'));
    const second = turns.take(() => defer(() => { ran = true; return of('never'); }));
    const third = turns.take(() => m.cold(' c|'));
    const unsub = '                        -!';
    m.expect(first).toBeObservable('       ---a|');
    m.expect(second, unsub).toBeObservable('-----');
    m.expect(third).toBeObservable('       ----c|');
    m.flush();
    expect(ran).toBe(false);
  }));

  it('runs ten thousand turns that are over at once without nesting them', () => {
    const turns = new Turnstile();
    const seen: number[] = [];
    const taken = Array.from({ length: 10_000 }, (_, index) => turns.take(({ release }) => (release(), of(index))));
    // The first subscribed to last, so that all the others are ready when it is over.
    for (const turn of taken.slice(1)) turn.subscribe((index) => seen.push(index));
    taken[0]!.subscribe((index) => seen.push(index));
    expect(seen).toEqual(Array.from({ length: 10_000 }, (_, index) => index));
  });

  it('does not release twice: the next turn stays alone', () => {
    const turns = new Turnstile();
    const running: string[] = [];
    const releases: (() => void)[] = [];
    const turn = (name: string) =>
      turns.take(({ release }) => {
        running.push(name);
        releases.push(release);
        return new Promise<never>(() => undefined);
      });
    for (const name of ['a', 'b', 'c']) turn(name).subscribe();
    releases[0]!();
    releases[0]!();
    expect(running).toEqual(['a', 'b']);
  });

  // prettier-ignore
  it('finishes a send that was begun when its caller leaves, and only then lets the next turn begin', marbles((m) => {
    const turns = new Turnstile();
    const abandoned: string[] = [];
    const send = m.cold<string>('     ----s|');
    const subs = '                    ^----!';
    const first = turns.take(({ release, commit }) => commit(send, (sent) => abandoned.push(sent)).pipe(tap(release)));
    const second = turns.take(() => m.cold('b|'));
    const unsub = '                   --!';
    m.expect(first, unsub).toBeObservable('------');
    m.expect(second).toBeObservable(' -----b|');
    m.expect(send).toHaveSubscriptions(subs);
    m.flush();
    expect(abandoned).toEqual(['s']);
  }));

  // prettier-ignore
  it('says of no send that it was abandoned when its caller stays', marbles((m) => {
    const turns = new Turnstile();
    const abandoned: string[] = [];
    const first = turns.take(({ commit }) => commit(m.cold<string>('--s|'), (sent) => abandoned.push(sent)));
    const atOnce = turns.take(({ commit }) => commit(of('now'), (sent) => abandoned.push(sent)));
    m.expect(first).toBeObservable('                        ---(s|)');
    m.expect(atOnce).toBeObservable('                       ---(n|)', { n: 'now' });
    m.flush();
    expect(abandoned).toEqual([]);
  }));

  // prettier-ignore
  it('passes the failure of a send on', marbles((m) => {
    const turns = new Turnstile();
    const failing = turns.take(({ commit }) => commit(m.cold<string>('--#'), () => undefined));
    const next = turns.take(() => m.cold('b|'));
    m.expect(failing).toBeObservable('  --#');
    m.expect(next).toBeObservable('     --b|');
  }));
});
