import { isDeepStrictEqual } from 'node:util';
import { map, NEVER, type OperatorFunction, share, Subject, take } from 'rxjs';
import { concatMapAhead } from '../operators/flow/concatMapAhead.js';
import { firehose } from './firehose.js';
import { gated } from './gated.js';
import { inspectShort } from './internal/inspectShort.js';
import { runMarbles, type RunMarblesOptions } from './runMarbles.js';

/** What `operatorContract` needs to know about the operator. */
export interface OperatorContract extends Pick<RunMarblesOptions, 'assertDeepEqual'> {
  /** The operator under test, over strings. Called for every case. */
  readonly operator: () => OperatorFunction<string, unknown>;
  /** How many values it may read of an endless synchronous source to emit three: an integer ≥ 3. */
  readonly readsForThree: number;
  /** What an empty source, `--|`, becomes, as a diagram. Default `--|`. */
  readonly empty?: string;
  /** When it subscribes to that source. Default `^-!`. */
  readonly emptySubs?: string | string[];
  /** What a failing source, `--#`, becomes, if the operator does not pass the error. Default `--#`. */
  readonly failing?: {
    /** The source's marbles. */
    readonly marbles: string;
    /** The values in them. */
    readonly values: Readonly<Record<string, unknown>>;
  };
  /** The operator with a function that throws an Error 'thrown' for the first value it is called with. Default: it has no function. */
  readonly throwing?: () => OperatorFunction<string, unknown>;
}

/** One of the manners that an operator should have. */
export interface ContractCase {
  /** What is checked, as the title of a test. */
  readonly title: string;
  /** Throws if the operator does otherwise. */
  readonly check: () => void;
}

/**
 * The manners every operator should have, as tests for any framework: empty, silent and failing sources, unsubscribing, also from
 * within an emission, a fresh start for every subscriber, values that are sent on while one is being handled, sharing, stopping
 * a synchronous source in time, a function that throws, and a shared source that continues when the operator is unsubscribed while full.
 *
 * ```ts
 * for (const { title, check } of operatorContract({ operator: () => batch({ size: 2 }), readsForThree: 6 })) it(title, check);
 * ```
 */
export function operatorContract(contract: OperatorContract): readonly ContractCase[] {
  const { operator, readsForThree, empty = '--|', emptySubs = '^-!', failing, throwing, assertDeepEqual } = contract;
  const options = assertDeepEqual === undefined ? {} : { assertDeepEqual };
  const marbles = (title: string, body: Parameters<typeof runMarbles>[0]): ContractCase => ({
    title,
    check: () => runMarbles(body, options),
  });
  return [
    marbles('completes with an empty source', ({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('--|');
      expectObservable(source.pipe(operator())).toBe(empty);
      expectSubscriptions(source.subscriptions).toBe(emptySubs);
    }),
    marbles('stays silent with a silent source', ({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('----');
      expectObservable(source.pipe(operator()), '---!').toBe('----');
      expectSubscriptions(source.subscriptions).toBe('^--!');
    }),
    marbles('passes an error of the source', ({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('--#');
      expectObservable(source.pipe(operator())).toBe(failing?.marbles ?? '--#', failing?.values);
      expectSubscriptions(source.subscriptions).toBe('^-!');
    }),
    marbles(
      'unsubscribes from the source when unsubscribed, and emits nothing more',
      ({ hot, expectObservable, expectSubscriptions }) => {
        const source = hot<string>('--a-a-a-|');
        expectObservable(source.pipe(operator()), '-!').toBe('---------');
        expectSubscriptions(source.subscriptions).toBe('^!');
      },
    ),
    marbles('starts afresh for every subscriber', ({ cold, expectObservable }) => {
      const result = cold<string>('-a-b-c-(de)-f-|').pipe(operator());
      expectObservable(result).toEqual(result);
    }),
    marbles('gives the same to all who share it', ({ cold, expectObservable }) => {
      const result = cold<string>('-a-b-c-(de)-f-|').pipe(operator());
      const shared = result.pipe(share());
      expectObservable(shared).toEqual(result);
      expectObservable(shared).toEqual(result);
    }),
    {
      title: 'stops a synchronous source when its subscriber has enough',
      check: () => {
        const { source, read } = firehose();
        const seen: unknown[] = [];
        source.pipe(operator(), take(3)).subscribe((value) => seen.push(value));
        equal(seen.length, 3, 'values of an endless source');
        if (read() > readsForThree) throw new Error(`read ${read()} values to emit three, expected ≤ ${readsForThree}`);
      },
    },
    {
      title: 'leaves the source when unsubscribed from within an emission',
      check: () => {
        const source = new Subject<string>();
        const seen: unknown[] = [];
        const subscription = source.pipe(operator()).subscribe((value) => {
          seen.push(value);
          subscription.unsubscribe();
        });
        for (let value = 0; value < 1000 && !subscription.closed; value++) source.next(String(value));
        // What emits only at the end has had no chance.
        if (!subscription.closed) subscription.unsubscribe();
        equal(source.observed, false, 'whether the source still has a subscriber');
        if (seen.length > 1) throw new Error(`emitted ${seen.length} values, though it was left at the first`);
      },
    },
    {
      title: 'ends well, and loses nothing, where the source sends on while a value is handled',
      check: () => {
        const source = new Subject<string>();
        const sent: string[] = [];
        const send = (value: string) => {
          sent.push(value);
          source.next(value);
        };
        let more = 3;
        let [seen, ended] = [0, false];
        source.pipe(operator()).subscribe({
          next: () => {
            seen++;
            if (more-- > 0) send(`more ${more}`);
          },
          complete: () => (ended = true),
        });
        for (let value = 0; value < 50; value++) send(String(value));
        source.complete();
        equal(source.observed, false, 'whether the source still has a subscriber');
        // Operators that wait end later; those that do not have ended.
        if (!ended && more === 3) return;
        equal(more <= 0, true, 'whether all that was sent was handled');
        const again = new Subject<string>();
        let plain = 0;
        again.pipe(operator()).subscribe(() => plain++);
        for (const value of sent) again.next(value);
        again.complete();
        equal(seen, plain, 'how many values came of what was sent');
      },
    },
    {
      title: 'lets a shared source continue when it is unsubscribed while downstream is full',
      check: () => {
        const shared = gated(200).source.pipe(
          map((row) => String(row)),
          share(),
        );
        const full = shared.pipe(
          operator(),
          concatMapAhead(() => NEVER, { ahead: 0 }),
        );
        const left = full.subscribe();
        let ended = false;
        shared.subscribe({ complete: () => (ended = true) });
        left.unsubscribe();
        equal(ended, true, 'whether the other subscriber came to the end');
      },
    },
    ...(throwing === undefined ? [] : [throws(throwing)]),
  ];
}

function throws(throwing: () => OperatorFunction<string, unknown>): ContractCase {
  return {
    title: 'fails with a throw of its function, and leaves the source',
    check: () => {
      const source = new Subject<string>();
      const errors: unknown[] = [];
      source.pipe(throwing()).subscribe({ error: (error) => errors.push(error) });
      for (let value = 0; value < 100 && source.observed; value++) source.next(String(value));
      equal(errors.map(String), ['Error: thrown'], 'its errors');
      equal(source.observed, false, 'whether the source still has a subscriber');
    },
  };
}

function equal(actual: unknown, expected: unknown, what: string): void {
  if (!isDeepStrictEqual(actual, expected)) {
    throw new Error(`${what}: expected ${inspectShort(expected)}, got ${inspectShort(actual)}`);
  }
}
