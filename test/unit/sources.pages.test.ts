import { from, lastValueFrom, NEVER, of, take, tap, throwError, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { concatMapAhead } from '../../src/operators/flow/concatMapAhead.js';
import { fromPages, type PageRequest } from '../../src/sources/index.js';
import { marbles } from '../marbles/marbles.js';

const list = Array.from({ length: 7 }, (_, place) => place);

/** A paged list that remembers what it was asked. */
function server() {
  const asked: PageRequest<string>[] = [];
  const page = (request: PageRequest<string>) => {
    asked.push(request);
    const { offset, limit } = request;
    return of({ rows: list.slice(offset, offset + limit), total: list.length });
  };
  return { asked, page };
}

describe('fromPages', () => {
  it('asks page after page until one is short', async () => {
    const { asked, page } = server();
    const items = fromPages(page, { items: ({ rows }) => rows, limit: 3 });
    expect(await lastValueFrom(items.pipe(toArray()))).toStrictEqual(list);
    expect(asked.map(({ offset, limit }) => [offset, limit])).toStrictEqual([
      [0, 3],
      [3, 3],
      [6, 3],
    ]);
  });

  it('asks once more where a full page may be the last, and not where the total is known', async () => {
    for (const total of [undefined, (page: { total: number }) => page.total]) {
      const { asked, page } = server();
      await lastValueFrom(fromPages(page, { items: ({ rows }) => rows, limit: 7, ...(total && { total }) }));
      expect(asked).toHaveLength(total === undefined ? 2 : 1);
    }
  });

  it('goes on after a page shorter than asked for, where the total says there is more', async () => {
    const capped = ({ offset }: PageRequest<string>) => of({ rows: list.slice(offset, offset + 2), total: 7 });
    const items = fromPages(capped, { items: ({ rows }) => rows, limit: 100, total: ({ total }) => total });
    expect(await lastValueFrom(items.pipe(toArray()))).toStrictEqual(list);
  });

  it('follows cursors, through empty pages too', async () => {
    const pages: Record<string, { rows: number[]; next: string | null }> = {
      start: { rows: [1, 2], next: 'b' },
      b: { rows: [], next: 'c' },
      c: { rows: [3], next: null },
    };
    const items = fromPages(({ cursor = 'start' }) => [pages[cursor]!], {
      items: ({ rows }) => rows,
      nextCursor: ({ next }) => next,
    });
    expect(await lastValueFrom(items.pipe(toArray()))).toStrictEqual([1, 2, 3]);
  });

  it('asks for no page that nobody wants', async () => {
    const { asked, page } = server();
    await lastValueFrom(fromPages(page, { items: ({ rows }) => rows, limit: 2 }).pipe(take(3)));
    expect(asked).toHaveLength(2);
  });

  it('passes the error of a request and what a function throws', () => {
    const errors: unknown[] = [];
    const note = { error: (error: unknown) => errors.push(error) };
    fromPages(() => throwError(() => 'down'), { items: () => [] }).subscribe(note);
    fromPages(() => of(1), {
      items: () => {
        throw new Error('odd page');
      },
    }).subscribe(note);
    expect(errors).toStrictEqual(['down', new Error('odd page')]);
  });

  it('does not ask for the next page while what is downstream is full', () => {
    const { asked, page } = server();
    fromPages(page, { items: ({ rows }) => rows, limit: 2 })
      .pipe(concatMapAhead(() => NEVER, { ahead: 0 }))
      .subscribe();
    expect(asked).toHaveLength(1);
  });

  it(
    'waits for slow pages, and stops the request under way when unsubscribed',
    marbles((m) => {
      const first = m.cold(' --a|');
      const second = m.cold('   ------b|');
      const unsub = '        ------!';
      const secondSubs = '   --^---!';
      const expected = '     --x---';
      const result = fromPages(({ offset }) => (offset === 0 ? first : second), {
        items: (page) => [page as string],
        limit: 1,
      });
      m.expect(result, unsub).toBeObservable(expected, { x: 'a' });
      m.expect(second).toHaveSubscriptions(secondSubs);
    }),
  );

  it('lets a page of values that come in parts be any ObservableInput', async () => {
    const items = fromPages(() => Promise.resolve([1, 2]), { items: (rows) => rows });
    expect(await lastValueFrom(items.pipe(toArray()))).toStrictEqual([1, 2]);
    const seen: number[] = [];
    fromPages(() => from([[3]]), { items: (rows) => rows })
      .pipe(tap((value) => seen.push(value)))
      .subscribe();
    expect(seen).toStrictEqual([3]);
  });

  it('refuses limit 0', () => {
    expect(() => fromPages(() => of(1), { items: () => [], limit: 0 })).toThrow(RangeError);
  });
});
