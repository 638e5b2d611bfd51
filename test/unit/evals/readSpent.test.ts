/** What a run has spent, kept in its folder for the process that continues it. */
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { TinkerEvent } from '../../../src/client/events.js';
import { budgetSpent, readSpent, trackCost, withCost } from '../../../src/evals/index.js';
import type { Step } from '../../../src/operators/training/step.js';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'tinker-rx-spent-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const used = (trained: number): TinkerEvent =>
  ({ type: 'tokens-used', target: 'm', prompt: 0, cached: 0, sampled: 0, trained }) as unknown as TinkerEvent;
const step = (index: number) => ({ index, loss: 1, metrics: {} }) as unknown as Step;

/** A process of a run with a budget of 100 tokens: `kill` ends it without a word, as kill -9 does. */
function start() {
  const events$ = new Subject<TinkerEvent>();
  const steps$ = new Subject<Step>();
  const cost$ = trackCost(events$, { model: 'm', before: readSpent(folder) });
  const spent: string[] = [];
  budgetSpent(cost$, { tokens: 100 }).subscribe(({ reason }) => spent.push(reason));
  const logged: number[] = [];
  const running = steps$
    .pipe(withCost(cost$, { folder, service: { sessionId: 'session' }, model: 'm' }))
    .subscribe(({ metrics }) => logged.push(metrics['cost/tokens']!));
  return { events$, steps$, spent, logged, running };
}

it('counts on in the next process, so that a budget holds over a kill', () => {
  const first = start();
  first.events$.next(used(30));
  first.steps$.next(step(0));
  first.events$.next(used(30));
  first.steps$.next(step(1));
  expect(first.logged).toStrictEqual([30, 60]);
  expect(readSpent(folder)).toMatchObject({ trained: 60, damaged: [] });
  const second = start();
  expect(second.spent).toStrictEqual([]);
  second.events$.next(used(45));
  expect(second.spent).toStrictEqual(['the budget of 100 tokens is spent: 105 tokens']);
  second.running.unsubscribe();
  expect(readSpent(folder)).toMatchObject({ trained: 105, usd: undefined });
  expect(readSpent(folder).lines.map(({ trained, sessionId }) => [sessionId, trained])).toStrictEqual([
    ['session', 30],
    ['session', 30],
    ['session', 45],
  ]);
});

it('names a line that was cut off, does not count it, and does not let it swallow the next', () => {
  const first = start();
  first.events$.next(used(10));
  first.running.unsubscribe();
  const path = join(folder, 'cost.jsonl');
  appendFileSync(path, '{"trained": 5');
  expect(readSpent(folder)).toMatchObject({ trained: 10, damaged: [`${path}:2`] });
  const second = start();
  second.events$.next(used(7));
  second.running.unsubscribe();
  expect(readSpent(folder)).toMatchObject({ trained: 17, damaged: [`${path}:2`] });
  expect(readFileSync(path, 'utf8').endsWith('}\n')).toBe(true);
});

it('is nothing for a folder without a run, and writes nothing where nothing was spent', () => {
  expect(readSpent(join(folder, 'none'))).toMatchObject({ prompt: 0, trained: 0, lines: [] });
  start().running.unsubscribe();
  expect(existsSync(join(folder, 'cost.jsonl'))).toBe(false);
});
