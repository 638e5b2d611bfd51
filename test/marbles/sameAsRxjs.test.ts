// 4,000 random programs: our operators do what RxJS's own do, also where the source feeds the inners.
import fc from 'fast-check';
import {
  concatMap,
  groupBy,
  map,
  mergeMap,
  Observable,
  type OperatorFunction,
  scan,
  take,
  toArray,
  VirtualTimeScheduler,
  windowCount,
} from 'rxjs';
import { describe, expect, it } from 'vitest';
import { concatMapAhead } from '../../src/operators/flow/concatMapAhead.js';
import { mergeMapWeighted } from '../../src/operators/flow/mergeMapWeighted.js';
import { fromArray } from '../../src/sources/fromArray.js';

/** When a stream speaks: a gap before each value, 0 for at once, and how it ends. */
interface Script {
  readonly gaps: readonly number[];
  readonly end: 'complete' | 'error' | 'never';
}

const script = (length: number): fc.Arbitrary<Script> =>
  fc.record({
    gaps: fc.array(fc.nat(3), { maxLength: length }),
    end: fc.oneof({ weight: 8, arbitrary: fc.constant('complete' as const) }, fc.constantFrom('error', 'never')),
  });

const play = <T>(scheduler: VirtualTimeScheduler, { gaps, end }: Script, value: (place: number) => T): Observable<T> =>
  new Observable((subscriber) => {
    let place = 0;
    const emit = () => {
      subscriber.next(value(place++));
      go();
    };
    const go = () => {
      if (subscriber.closed) return;
      if (place < gaps.length) {
        if (gaps[place] === 0) emit();
        else subscriber.add(scheduler.schedule(emit, gaps[place]));
      } else if (end === 'complete') subscriber.complete();
      else if (end === 'error') subscriber.error(new Error('end'));
    };
    go();
  });

/** Everything that happens, and when. `say` adds what happens inside. */
function trace(run: (scheduler: VirtualTimeScheduler, say: (what: string) => void) => Observable<unknown>): string[] {
  const scheduler = new VirtualTimeScheduler(undefined, 10_000);
  const log: string[] = [];
  const say = (what: string) => void log.push(`${scheduler.frame} ${what}`);
  const running = run(scheduler, say).subscribe({
    next: (value) => say(JSON.stringify(value)),
    error: (error: Error) => say(`error ${error.message}`),
    complete: () => say('complete'),
  });
  scheduler.flush();
  running.unsubscribe();
  return log;
}

/** Who is stopped by an error, whether before or after it is told, is stopped in its frame: the order within is free. */
const settled = (log: readonly string[]) => [
  ...log.filter((line) => !line.includes(' stop ')),
  ...log.filter((line) => line.includes(' stop ')).sort(),
];

const valuesOf = (log: readonly string[]) => log.map((line) => line.slice(line.indexOf(' ') + 1));

interface Cold {
  readonly source: Script;
  readonly inners: readonly (Script | 'throw')[];
}
const cold: fc.Arbitrary<Cold> = fc.record({
  source: script(8),
  inners: fc.array(fc.oneof({ weight: 12, arbitrary: script(4) }, fc.constant('throw' as const)), {
    minLength: 8,
    maxLength: 8,
  }),
});

type Operator = (project: (place: number) => Observable<unknown>) => OperatorFunction<number, unknown>;

/** A source and the inners that its values make. */
const runCold = ({ source, inners }: Cold, operator: Operator) =>
  settled(
    trace((scheduler, say) => {
      const project = (place: number) => {
        say(`start ${place}`);
        const inner = inners[place]!;
        if (inner === 'throw') throw new Error('project');
        return new Observable((subscriber) => {
          subscriber.add(() => say(`stop ${place}`));
          return play(scheduler, inner, (each) => `${place}.${each}`).subscribe(subscriber);
        });
      };
      return play(scheduler, source, (place) => place).pipe(operator(project));
    }),
  );

const parts = fc.constantFrom('windowCount', 'overlapping', 'groupBy');
const shapes = fc.constantFrom('all', 'array', 'first', 'sums');
interface Fed {
  readonly source: Script;
  readonly by: 'windowCount' | 'overlapping' | 'groupBy';
  readonly count: number;
  readonly shape: 'all' | 'array' | 'first' | 'sums';
}
const fed: fc.Arbitrary<Fed> = fc.record({
  source: script(16),
  by: parts,
  count: fc.integer({ min: 1, max: 5 }),
  shape: shapes,
});

type FedOperator = (
  project: (part: Observable<number>) => Observable<unknown>,
) => OperatorFunction<Observable<number>, unknown>;

/** A source cut into parts that it goes on feeding. `gated` takes one of ours, which waits at gates. */
const runFed = ({ source, by, count, shape }: Fed, operator: FedOperator, gated: boolean) =>
  trace((scheduler) => {
    const cut: OperatorFunction<number, Observable<number>> = by === 'groupBy'
      ? (rows) => rows.pipe(groupBy((row) => row % count))
      : windowCount(count, by === 'overlapping' ? Math.ceil(count / 2) : count);
    const shaped: Record<Fed['shape'], (part: Observable<number>) => Observable<unknown>> = {
      all: (part) => part,
      array: (part) => part.pipe(toArray()),
      first: (part) => part.pipe(take(2)),
      sums: (part) => part.pipe(scan((sum, row) => sum + row, 0)),
    };
    const rows = gated ? fromArray(source.gaps.map((_, place) => place)) : play(scheduler, source, (place) => place);
    return rows.pipe(
      map((row) => row),
      cut,
      operator(shaped[shape]),
    );
  });

describe('1,000 random programs', () => {
  const settings = { numRuns: 1000, seed: 13 };
  const weight = () => 1;

  it('with cold inners are the same to concatMapAhead as to concatMap', () => {
    fc.assert(
      fc.property(cold, fc.integer({ min: 1, max: 3 }), (program, ahead) => {
        const theirs = runCold(program, (project) => concatMap(project));
        // With ahead 0 to the frame, starts and stops included.
        expect(runCold(program, (project) => concatMapAhead(project, { ahead: 0 }))).toStrictEqual(theirs);
        // Ahead, what comes is the same and no later; an error of the source is not held back, so it may cut off more.
        if (program.source.end === 'error') return;
        const said = (log: readonly string[]) => valuesOf(log).filter((line) => !/^(start|stop)/.test(line));
        const ours = said(runCold(program, (project) => concatMapAhead(project, { ahead })));
        expect(ours).toStrictEqual(said(theirs));
      }),
      settings,
    );
  });

  it('with cold inners are the same to mergeMapWeighted as to mergeMap, by concurrency and by weight', () => {
    fc.assert(
      fc.property(cold, fc.integer({ min: 1, max: 4 }), (program, concurrency) => {
        const theirs = runCold(program, (project) => mergeMap(project, concurrency));
        const limited = { weight, budget: Infinity, concurrency };
        expect(runCold(program, (project) => mergeMapWeighted(project, limited))).toStrictEqual(theirs);
        const weighed = { weight, budget: concurrency - 1 };
        expect(runCold(program, (project) => mergeMapWeighted(project, weighed))).toStrictEqual(theirs);
      }),
      settings,
    );
  });

  it('with inners that the source feeds are the same to concatMapAhead as to concatMap', () => {
    fc.assert(
      fc.property(fed, fc.boolean(), (program, gated) => {
        const theirs = runFed(program, (project) => concatMap(project), gated);
        expect(runFed(program, (project) => concatMapAhead(project, { ahead: 0 }), gated)).toStrictEqual(theirs);
      }),
      settings,
    );
  });

  it('with inners that the source feeds are the same to mergeMapWeighted as to mergeMap', () => {
    fc.assert(
      fc.property(fed, fc.integer({ min: 1, max: 4 }), fc.boolean(), (program, concurrency, gated) => {
        const theirs = runFed(program, (project) => mergeMap(project, concurrency), gated);
        const limited = { weight, budget: Infinity, concurrency };
        expect(runFed(program, (project) => mergeMapWeighted(project, limited), gated)).toStrictEqual(theirs);
      }),
      settings,
    );
  });
});
