import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mapLeft } from 'fp-ts/lib/Either.js';
import { lastValueFrom, map, mergeMap, NEVER, of, type OperatorFunction, take, throwError, toArray } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { settle, toDatums, unsettle } from '../../src/operators/index.js';
import { toDeadLetters } from '../../src/sinks/index.js';
import { fromJsonl, redeliver } from '../../src/sources/index.js';
import { rollouts } from '../../src/rl/index.js';
import { evaluate } from '../../src/evals/index.js';
import { instantAgent, instantSampler } from '../marbles/instantLoop.js';

let folder: string;
let dead: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dead-'));
  dead = join(folder, 'kept', 'dead.jsonl');
});
afterEach(() => rmSync(folder, { recursive: true }));
const letters = () =>
  readFileSync(dead, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { item: unknown; error: unknown; origin?: unknown; attempts: number });

interface Row {
  readonly id: number;
}
/** Works for rows, but those that are bad. */
const work = (bad: readonly number[]) =>
  mergeMap((item: Row) =>
    (bad.includes(item.id) ? throwError(() => new RangeError(`bad ${item.id}`)) : of(item.id)).pipe(
      settle<number>(),
      map(mapLeft((error) => ({ item, error }))),
    ),
  );

describe('dead letters', () => {
  it('are kept with their error and where they came from, and a second run takes exactly those', async () => {
    const path = join(folder, 'rows.jsonl');
    writeFileSync(path, [1, 2, 3, 4].map((id) => `${JSON.stringify({ id })}\n`).join(''));
    const deadLetters = toDeadLetters(dead);
    const first = fromJsonl<Row>(path).pipe(work([2, 4]), unsettle({ deadLetters }), toArray());
    expect(await lastValueFrom(first)).toStrictEqual([1, 3]);
    expect(letters()).toMatchObject([
      {
        item: { id: 2 },
        error: { name: 'RangeError', message: 'bad 2' },
        attempts: 1,
        origin: { file: path, line: 2 },
      },
      { item: { id: 4 }, error: { message: 'bad 4' }, origin: { line: 4 } },
    ]);
    const again = (bad: readonly number[]) =>
      lastValueFrom(
        redeliver<Row, number>(dead, (items) => items.pipe(work(bad), unsettle({ deadLetters }))).pipe(toArray()),
      );
    expect(await again([4])).toStrictEqual([2]);
    expect(letters()).toMatchObject([{ item: { id: 4 } }]);
    expect(await again([])).toStrictEqual([4]);
    expect([existsSync(dead), existsSync(`${dead}.taken`)]).toStrictEqual([false, false]);
    expect(await again([])).toStrictEqual([]);
  });

  it('are taken again where a second run did not come to its end, with those that failed since', async () => {
    const deadLetters = toDeadLetters(dead);
    deadLetters({ item: { id: 1 }, error: new Error('x'), attempts: 1 });
    redeliver<Row, never>(dead, (items) => items.pipe(mergeMap(() => NEVER)))
      .subscribe()
      .unsubscribe();
    deadLetters({ item: { id: 2 }, error: new Error('x'), attempts: 1 });
    const ids = redeliver<Row, number>(dead, (items) => items.pipe(map(({ id }) => id)));
    expect(await lastValueFrom(ids.pipe(toArray()))).toStrictEqual([1, 2]);
  });

  it('are kept where the pipeline of a second run completes before it has read them all', async () => {
    const deadLetters = toDeadLetters(dead);
    for (const id of [1, 2, 3]) deadLetters({ item: { id }, error: new Error('x'), attempts: 1 });
    const ids = (count: number) =>
      lastValueFrom(
        redeliver<Row, number>(dead, (items) =>
          items.pipe(
            map(({ id }) => id),
            take(count),
          ),
        ).pipe(toArray()),
      );
    expect(await ids(1)).toStrictEqual([1]);
    expect(await ids(9)).toStrictEqual([1, 2, 3]);
    expect(await ids(9)).toStrictEqual([]);
  });

  it('are taken where a line of the file was torn by a crash', async () => {
    const deadLetters = toDeadLetters(dead);
    const torn = () => appendFileSync(dead, '{"item":{"id":7');
    const again = (pipeline: OperatorFunction<Row, unknown>) => redeliver(dead, pipeline).pipe(toArray());
    deadLetters({ item: { id: 1 }, error: new Error('x'), attempts: 1 });
    torn();
    again(mergeMap(() => NEVER))
      .subscribe()
      .unsubscribe();
    deadLetters({ item: { id: 2 }, error: new Error('x'), attempts: 1 });
    torn();
    expect(await lastValueFrom(again(map(({ id }) => id)))).toStrictEqual([1, 2]);
  });

  it('are rows that toDatums cannot write', async () => {
    const renderer = { buildSupervisedExamples: () => [] };
    const datums = of({ id: 1 }, { messages: [{ role: 'assistant', content: 'yes' }] }).pipe(
      toDatums(renderer, { onFailure: { deadLetters: toDeadLetters(dead) } }),
      toArray(),
    );
    expect(await lastValueFrom(datums)).toStrictEqual([]);
    expect(letters()).toMatchObject([{ item: { id: 1 } }]);
  });

  it('are tasks of which too few rollouts succeeded, and examples with a failure', async () => {
    const agent = ((task: string, ...rest: [never, never]) => {
      if (task === 'bad') throw new TypeError('a bad task');
      return instantAgent(task, ...rest);
    }) as typeof instantAgent;
    const onFailure = { retries: 1, deadLetters: toDeadLetters(dead) };
    const groups = of('good', 'bad').pipe(rollouts(agent, { policy: instantSampler, group: 2, onFailure }), toArray());
    expect(await lastValueFrom(groups)).toMatchObject([{ viable: true }, { viable: false }]);
    expect(letters()).toMatchObject([
      { item: 'bad', error: { name: 'TypeError', message: 'a bad task' }, attempts: 2 },
    ]);
    const records = of('good', 'bad').pipe(
      evaluate(agent, { sampler: instantSampler, output: () => 'hi', onFailure }),
      toArray(),
    );
    expect(await lastValueFrom(records)).toHaveLength(2);
    expect(letters().map(({ item }) => item)).toStrictEqual(['bad', 'bad']);
  });

  it('end evaluation at the first failure where that is the policy', async () => {
    const agent = (() => {
      throw new TypeError('a bad task');
    }) as unknown as typeof instantAgent;
    const records = of('bad').pipe(evaluate(agent, { sampler: instantSampler, onFailure: 'fail' }), toArray());
    await expect(lastValueFrom(records)).rejects.toThrow('a bad task');
  });
});
