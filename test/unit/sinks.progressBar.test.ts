import { concat, map, NEVER, of, Subject, tap, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { TinkerEvent } from '../../src/client/events.js';
import { barLine, clock, plainLine, type ProgressState } from '../../src/support/terminal/progressLine.js';
import { progressBar, type ProgressStream } from '../../src/sinks/index.js';
import type { SourceEvent } from '../../src/sources/index.js';
import { keepsContract } from '../marbles/contract.js';
import { marbles } from '../marbles/marbles.js';

function screen(isTTY: boolean, columns = 100) {
  const written: string[] = [];
  const stream: ProgressStream = { write: (text) => written.push(text), isTTY, columns };
  return { stream, written };
}
const state: ProgressState = {
  label: 'train',
  unit: 'step',
  done: 340,
  total: 1000,
  fraction: 0.34,
  perSecond: 4.2,
  remainingMs: 157_000,
  elapsedMs: 81_000,
  detail: 'loss 0.8123',
  waiting: undefined,
};

describe('progress lines', () => {
  it('draw a bar with rate, time left and detail', () => {
    const bar = '████████░░░░░░░░░░░░░░░░';
    expect(barLine(state, 120)).toBe(`train  ${bar}  34 %  340/1000 steps  4.2 steps/s  2:37 left  loss 0.8123`);
  });

  it('are cut to the terminal', () => {
    expect(barLine(state, 30)).toHaveLength(30);
    expect(barLine(state, 30).endsWith('…')).toBe(true);
    expect(barLine(state, 0)).toBe('…');
  });

  it('leave out what is not known, and say what is waited for', () => {
    const unknown = {
      ...state,
      total: undefined,
      fraction: undefined,
      perSecond: undefined,
      remainingMs: undefined,
      waiting: 'waiting: paused capacity',
    };
    expect(barLine(unknown, 120)).toBe('train  340 steps  1:21 so far  loss 0.8123  waiting: paused capacity');
    expect(plainLine(state)).toBe('train: 34 %, 340/1000 steps, 4.2 steps/s, 2:37 left, loss 0.8123');
  });

  it.each([
    [0, '0:00'],
    [59_600, '1:00'],
    [3_599_000, '59:59'],
    [4_500_000, '1:15:00'],
  ])('show %d ms as %s', (ms, text) => {
    expect(clock(ms)).toBe(text);
  });
});

describe('progressBar', () => {
  keepsContract({ operator: () => progressBar({ stream: screen(false).stream }), readsForThree: 3 });

  it(
    'redraws one line on a terminal, at most ten times a second, and ends it',
    marbles((m) => {
      const { stream, written } = screen(true);
      const source = m.cold('  a 49ms b 49ms c 999ms |', {
        a: { index: 0, loss: 3 },
        b: { index: 1, loss: 2 },
        c: { index: 2, loss: 1 },
      });
      const expected = '       a 49ms b 49ms c 999ms |';
      const result = source.pipe(
        progressBar({ total: 4, stream }),
        map(({ index }) => 'abc'[index]!),
      );
      m.expect(result).toBeObservable(expected);
      m.flush();
      expect(written.slice(0, 2)).toStrictEqual([
        `\rtrain  ${'█'.repeat(12)}${'░'.repeat(12)}  50 %  2/4 steps  20.0 steps/s  0:00 left  loss 2.0000\u001b[K`,
        `\rtrain  ${'█'.repeat(18)}${'░'.repeat(6)}  75 %  3/4 steps  20.0 steps/s  0:00 left  loss 1.0000\u001b[K`,
      ]);
      expect(written.at(-1)).toBe('\n');
      expect(written).toHaveLength(3);
    }),
  );

  it(
    'writes plain lines now and then where there is no terminal, and one at the end',
    marbles((m) => {
      const { stream, written } = screen(false);
      const source = m.cold('  a 4999ms b 4999ms c 4999ms d 999ms |', { a: {}, b: {}, c: {}, d: {} });
      m.expect(
        source.pipe(
          progressBar({ stream, label: 'samples', unit: 'sample' }),
          map(() => 'x'),
        ),
      ).toBeObservable('x 4999ms x 4999ms x 4999ms x 999ms |');
      m.flush();
      expect(written).toStrictEqual([
        'samples: 2 samples, 0.20 samples/s, 0:10 so far\n',
        'samples: 4 samples, 0.20 samples/s, 0:16 so far\n',
      ]);
    }),
  );

  it(
    'counts a resumed run by its index, and its time left by its own rate',
    marbles((m) => {
      const { stream, written } = screen(false);
      const source = m.cold('  a 999ms (b|)', { a: { index: 499 }, b: { index: 500 } });
      m.expect(
        source.pipe(
          progressBar({ total: 601, stream }),
          map(() => 'x'),
        ),
      ).toBeObservable('x 999ms (x|)');
      m.flush();
      expect(written).toStrictEqual(['train: 83 %, 501/601 steps, 1.0 steps/s, 1:40 left\n']);
    }),
  );

  it(
    'draws by the bytes read where the number of steps is not known',
    marbles((m) => {
      const { stream, written } = screen(false);
      const progress = {
        type: 'source-progress',
        file: 'x',
        bytes: 25,
        totalBytes: 100,
        rows: 1,
        badRows: 0,
        untrainedRows: 0,
        done: false,
      } as const;
      const source$ = timer(500).pipe(map((): SourceEvent => progress));
      const source = m.cold('  a 999ms |', { a: {} });
      m.expect(
        source.pipe(
          progressBar({ stream, source$ }),
          map(() => 'x'),
        ),
      ).toBeObservable('x 999ms |');
      m.flush();
      expect(written).toStrictEqual(['train: 25 %, 1 step, 0:03 left\n']);
    }),
  );

  it(
    'says one row, and not 1 rows, before the first step',
    marbles((m) => {
      const { stream, written } = screen(false);
      const event = { type: 'source-progress', file: 'x', bytes: 1, rows: 1, badRows: 0, untrainedRows: 0 } as const;
      const source$ = timer(500).pipe(map((): SourceEvent => ({ ...event, done: false })));
      m.expect(m.cold('1s |').pipe(progressBar({ stream, source$ }))).toBeObservable('1s |');
      m.flush();
      expect(written.join('')).toContain(', 1 row read');
    }),
  );

  it(
    'shows what the service waits for, until something moves',
    marbles((m) => {
      const { stream, written } = screen(true, 200);
      const at = (type: string, rest: object) => ({ type, atMs: 0, ...rest }) as unknown as TinkerEvent;
      const events: Record<string, TinkerEvent> = {
        q: at('queue-state', { state: 'paused_capacity', reason: 'busy' }),
        r: at('request-retry', { delayMs: 1500 }),
        d: at('dispatch-paused', { pauseMs: 1000 }),
        b: at('billing-paused', { message: 'add funds' }),
        h: at('config-changed', {}),
        f: at('request-finished', {}),
        a: at('queue-state', { state: 'active' }),
      };
      const events$ = m.cold('q 99ms h 99ms r 99ms d 99ms b 99ms f 99ms q 99ms a', events);
      const source = m.cold(' 850ms |');
      m.expect(source.pipe(progressBar({ stream, events$ }))).toBeObservable('850ms |');
      m.flush();
      const shown = written.map((line) => /so far(?: {2}([^\u001b]*))?/.exec(line)?.[1] ?? '');
      expect(shown).toStrictEqual([
        'waiting: paused capacity (busy)',
        'trying again in 1.5 s',
        'sampling paused for 1.0 s',
        'paused for billing: add funds',
        '',
        'waiting: paused capacity (busy)',
        '',
        // The last is the end of the line.
        '',
      ]);
    }),
  );

  it('ends its line and its timers on error and on unsubscribe', () => {
    const failed = screen(true);
    throwError(() => 1)
      .pipe(progressBar({ stream: failed.stream }))
      .subscribe({ error: () => {} });
    const left = screen(true);
    const [source$, events$] = [new Subject<SourceEvent>(), new Subject<TinkerEvent>()];
    const subscription = concat(of({}), NEVER)
      .pipe(progressBar({ stream: left.stream, source$, events$ }))
      .subscribe();
    expect([source$.observed, events$.observed]).toStrictEqual([true, true]);
    subscription.unsubscribe();
    expect([source$.observed, events$.observed]).toStrictEqual([false, false]);
    expect([failed.written.at(-1), left.written.at(-1)]).toStrictEqual(['\n', '\n']);
  });

  it('shows what it is told to of a value, and fails with what that throws', () => {
    const { stream, written } = screen(false);
    of(7)
      .pipe(progressBar({ stream, detail: (value) => `value ${value}` }))
      .subscribe();
    expect(written[0]).toContain('value 7');
    const errors: unknown[] = [];
    of(7)
      .pipe(
        progressBar({
          stream,
          detail: () => {
            throw new Error('no');
          },
        }),
        tap(),
      )
      .subscribe({ error: (error) => errors.push(error) });
    expect(errors).toStrictEqual([new Error('no')]);
  });

  it.each([{ total: -1 }, { total: NaN }, { lineEveryMs: 0 }])('refuses %j', (options) => {
    expect(() => progressBar(options)).toThrow(RangeError);
  });
});
