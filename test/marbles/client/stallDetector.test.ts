import { NEVER, Subscription, catchError, of, type SchedulerLike, tap } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { StallDetector } from '../../../src/client/sampling/StallDetector.js';
import { marbles } from '../marbles.js';

const TWO_HOURS_MS = 120 * 60_000;
const code = catchError((error: unknown) => of((error as { code: string }).code));
const s = { s: 'stuck' };

describe('StallDetector', () => {
  // prettier-ignore
  it('fails everything as stuck after two hours in which nothing finished', marbles((m) => {
    const stalls = new StallDetector(TWO_HOURS_MS, m.scheduler);
    const early = '    ^';
    const late = '     60m ^';
    const expected = ' 120m (s|)';
    m.expect(stalls.watch(NEVER).pipe(code), early).toBeObservable(expected, s);
    m.expect(stalls.watch(NEVER).pipe(code), late).toBeObservable(expected, s);
  }));

  // prettier-ignore
  it('waits on while any of it finishes now and then', marbles((m) => {
    const stalls = new StallDetector(TWO_HOURS_MS, m.scheduler);
    const source = m.cold('  60m  a|');
    const expected = '       180m (s|)';
    m.expect(stalls.watch(NEVER).pipe(code)).toBeObservable(expected, s);
    m.expect(stalls.watch(source.pipe(tap(() => stalls.noteFinished())))).toBeObservable('60m a|');
  }));

  // prettier-ignore
  it('does not count a failure as progress', marbles((m) => {
    const stalls = new StallDetector(TWO_HOURS_MS, m.scheduler);
    const source = m.cold('  60m  #');
    const expected = '       120m (s|)';
    m.expect(stalls.watch(NEVER).pipe(code)).toBeObservable(expected, s);
    m.expect(stalls.watch(source)).toBeObservable('60m #');
  }));

  // prettier-ignore
  it('starts to count anew when work comes after a quiet time', marbles((m) => {
    const stalls = new StallDetector(TWO_HOURS_MS, m.scheduler);
    const source = m.cold('  -a|');
    const late = '           300m ^';
    const expected = '       420m (s|)';
    m.expect(stalls.watch(source)).toBeObservable('-a|');
    m.expect(stalls.watch(NEVER).pipe(code), late).toBeObservable(expected, s);
  }));

  it('keeps no timer when nothing is watched', () => {
    const timers: Subscription[] = [];
    const scheduler: SchedulerLike = {
      now: () => 0,
      schedule: () => {
        timers.push(new Subscription());
        return timers.at(-1)!;
      },
    };
    const watching = new StallDetector(TWO_HOURS_MS, scheduler).watch(NEVER).subscribe();
    expect(timers.map(({ closed }) => closed)).toEqual([false]);
    watching.unsubscribe();
    expect(timers.map(({ closed }) => closed)).toEqual([true]);
  });

  // prettier-ignore
  it('waits without end where that is wanted, and sets no timer too long to be one', marbles((m) => {
    const delays: number[] = [];
    const scheduler: SchedulerLike = {
      now: () => 0,
      schedule: (_, delay = 0) => {
        delays.push(delay);
        return new Subscription();
      },
    };
    m.expect(new StallDetector(Infinity, scheduler).watch(m.cold('--a|'))).toBeObservable('--a|');
    m.flush();
    expect(delays).toEqual([]);
  }));
});
