/** Operators that make data, or ask another model about it, whatever rows, delays and limits chance chooses. */
import fc from 'fast-check';
import { defer, finalize, map, type Observable, type OperatorFunction, timer, type VirtualTimeScheduler } from 'rxjs';
import { expect, it } from 'vitest';
import { dpo } from '../../../src/losses/index.js';
import {
  type ComputesLogprobs,
  type MarkedBatch,
  type Sampleable,
  type SupervisedRenderer,
  toDatums,
  toPairs,
  trainPreferences,
  withReference,
  withSoftTargets,
} from '../../../src/operators/index.js';
import type { RowEvent } from '../../../src/sources/index.js';
import { fakeTrainer } from '../../../src/testing/fakeTrainer.js';
import type { Datum } from '../../../src/wire/datum.js';
import { ModelInput } from '../../../src/wire/modelInput.js';
import type { SampleResponse } from '../../../src/wire/sampling.js';
import type { TensorData } from '../../../src/wire/tensor.js';
import { ValidationError } from '../../../src/wire/tinkerError.js';
import { clockOf, few, gaps, leaveAt, run, RUNS, spaced, upTo } from './virtual.js';

const moment = fc.integer({ min: 0, max: 120 });

type Message = { readonly role: string; readonly content: string };
const talk = (...contents: readonly string[]) => contents.map((content): Message => ({ role: 'assistant', content }));
/** An example for each message, one token a character. What begins with - carries no loss, and ! cannot be written. */
const renderer: SupervisedRenderer<Message, string> = {
  buildSupervisedExamples: (messages) =>
    messages.map(({ content }) => {
      if (content.startsWith('!')) throw new Error('cannot be written');
      const tokens = Array.from(content, (char) => char.charCodeAt(0));
      return { modelInput: ModelInput.fromInts(tokens), weights: tokens.map(() => (content.startsWith('-') ? 0 : 1)) };
    }),
};
/** What a datum was made from. */
const textOf = ({ modelInput, lossFnInputs }: Datum): string =>
  String.fromCharCode(...modelInput.toInts(), Number((lossFnInputs['target_tokens'] as TensorData).data.at(-1)));

it('toDatums gives every example that carries loss, once and in order, and reports every row it passes over', () =>
  fc.assert(
    fc.property(
      fc.array(fc.array(fc.constantFrom('+', '+', '-', '!'), { minLength: 1, maxLength: 3 }), { maxLength: 12 }),
      fc.boolean(),
      fc.integer({ min: 0, max: 40 }),
      (kinds, skip, leftMs) => {
        const rows = kinds.map((marks, row) => talk(...marks.map((mark, part) => `${mark}${row}.${part}`)));
        const running = { now: 0 };
        const events: RowEvent[] = [];
        const made = (clock: VirtualTimeScheduler) =>
          spaced(upTo(rows.length), clock, running).pipe(
            map((row) => rows[row]!),
            toDatums(renderer, {
              onFailure: skip ? 'skip' : 'fail',
              onEvent: (event) => void ('line' in event && events.push(event)),
            }),
            map(textOf),
          );
        const bad = kinds.map((marks) => marks.includes('!'));
        const firstBad = skip ? -1 : bad.indexOf(true);
        const read = firstBad < 0 ? rows.length : firstBad;
        const wanted = rows
          .slice(0, read)
          .flatMap((row, place) =>
            bad[place] ? [] : row.map(({ content }) => content).filter((text) => text[0] === '+'),
          );
        const clock = clockOf();
        const { values, end } = run(made(clock), clock);
        expect(values).toStrictEqual(wanted);
        const passedOver = upTo(read).flatMap((row) => {
          if (bad[row]) return [['row-skipped', row + 1]];
          return kinds[row]!.includes('-') ? [['row-untrained', row + 1]] : [];
        });
        expect(events.map(({ type, line }) => [type, line])).toStrictEqual(passedOver);
        if (firstBad >= 0) expect(end).toStrictEqual({ error: new Error('cannot be written') });
        else if (wanted.length === 0 && passedOver.some(([type]) => type === 'row-untrained'))
          expect((end as { readonly error: unknown }).error).toBeInstanceOf(ValidationError);
        else expect(end).toBe('complete');
        const other = clockOf();
        const before = leaveAt(made(other), leftMs, other);
        expect(before).toStrictEqual(wanted.slice(0, before.length));
        expect(running.now).toBe(0);
      },
    ),
    RUNS,
  ));

it('toPairs gives every preference its two sides, once and in order, up to the first that has none', () =>
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('good', 'good', 'good', 'empty', 'unknown'), { maxLength: 12 }),
      fc.integer({ min: 0, max: 40 }),
      (kinds, leftMs) => {
        const running = { now: 0 };
        const rowOf = (row: number): unknown =>
          kinds[row] === 'unknown'
            ? { prompt: `${row}?` }
            : { prompt: `${row}?`, chosen: `+${row}`, rejected: `${kinds[row] === 'empty' ? '-' : '+'}no ${row}` };
        const made = (clock: VirtualTimeScheduler) =>
          spaced(upTo(kinds.length), clock, running).pipe(
            map(rowOf),
            toPairs(renderer),
            map((pair) => pair.map(textOf)),
          );
        const bad = kinds.findIndex((kind) => kind !== 'good');
        const wanted = upTo(bad < 0 ? kinds.length : bad).map((row) => [`+${row}`, `+no ${row}`]);
        const clock = clockOf();
        const { values, end } = run(made(clock), clock);
        expect(values).toStrictEqual(wanted);
        if (bad < 0) expect(end).toBe('complete');
        else {
          const { error } = end as { readonly error: unknown };
          expect(error).toBeInstanceOf(ValidationError);
          expect(String(error)).toContain(`pair ${bad}: `);
        }
        const other = clockOf();
        const before = leaveAt(made(other), leftMs, other);
        expect(before).toStrictEqual(wanted.slice(0, before.length));
        expect(running.now).toBe(0);
      },
    ),
    RUNS,
  ));

/** A datum whose tokens are all its id. */
const datumOf = (id: number, length: number): Datum => ({
  modelInput: ModelInput.fromInts(upTo(length).map(() => id)),
  lossFnInputs: { target_tokens: upTo(length).map(() => id), weights: upTo(length).map(() => 1) },
});

/** A model that is asked about datums: which, and how many batches at once. */
class Asked {
  readonly ids: number[] = [];
  /** How many datums of each batch are asked about. */
  readonly #open = new Map<number, number>();
  mostBatches = 0;

  constructor(
    readonly clock: VirtualTimeScheduler,
    readonly takesMs: (id: number) => number,
    readonly batchOf: (id: number) => number,
    readonly fails: number | undefined = undefined,
  ) {}

  get open(): number {
    return [...this.#open.values()].reduce((sum, count) => sum + count, 0);
  }

  about<T>(prompt: ModelInput, answer: (id: number, length: number) => T): Observable<T> {
    return defer(() => {
      const id = prompt.toInts()[0]!;
      const batch = this.batchOf(id);
      const count = (change: 1 | -1) => this.#open.set(batch, (this.#open.get(batch) ?? 0) + change);
      this.ids.push(id);
      count(1);
      this.mostBatches = Math.max(this.mostBatches, [...this.#open.values()].filter((open) => open > 0).length);
      return timer(this.takesMs(id), this.clock).pipe(
        map(() => {
          if (id === this.fails) throw new Error(`no ${id}`);
          return answer(id, prompt.length);
        }),
        finalize(() => count(-1)),
      );
    });
  }

  readonly computeLogprobs: ComputesLogprobs['computeLogprobs'] = (prompt) =>
    this.about(prompt, (id, length) => new Float32Array(length).fill(-id));

  readonly sample: Sampleable['sample'] = ({ prompt, topkPromptLogprobs: k = 0 }) =>
    this.about(prompt, (id, length): SampleResponse => {
      const tokenIds = new Int32Array(length * k).fill(1000 + id);
      const topkPromptLogprobs = { tokenIds, logprobs: new Float32Array(length * k), k, length };
      return { sequences: [], topkPromptLogprobs } as unknown as SampleResponse;
    });
}

/** The operators that ask, each with what it adds to a datum. */
const ASKING: readonly {
  readonly operator: (asked: Asked, ahead: number) => OperatorFunction<readonly Datum[], MarkedBatch>;
  readonly added: (datum: Datum) => unknown;
  readonly wanted: (id: number, length: number) => unknown;
}[] = [
  {
    operator: (asked, ahead) => withReference(asked, { ahead }),
    added: ({ lossFnInputs }) => [...(lossFnInputs['reference_logprobs'] as TensorData).data],
    wanted: (id, length) => upTo(length).map(() => -id),
  },
  {
    operator: (asked, ahead) => withSoftTargets(asked, { topK: 2, ahead }),
    added: ({ lossFnInputs }) => [...(lossFnInputs['target_tokens'] as TensorData).toDense().data].map(Number),
    wanted: (id, length) => upTo(2 * length).map(() => 1000 + id),
  },
];

it('withReference and withSoftTargets ask about every datum once, no further ahead than they may, and keep the order; left, they ask no more', () =>
  fc.assert(
    fc.property(
      fc.array(fc.array(fc.record({ takesMs: fc.integer({ min: 0, max: 9 }), length: few }), { maxLength: 3 }), {
        maxLength: 12,
      }),
      fc.constantFrom(...ASKING),
      fc.integer({ min: 0, max: 3 }),
      fc.option(fc.integer({ min: 1, max: 30 }), { nil: undefined }),
      moment,
      (shapes, { operator, added, wanted }, ahead, fails, leftMs) => {
        const datums = shapes.flatMap((batch, place) => batch.map((shape) => ({ ...shape, place })));
        const idOf = (place: number, within: number) => shapes.slice(0, place).flat().length + within + 1;
        const work = (clock: VirtualTimeScheduler, failing?: number) => {
          const running = { now: 0 };
          const asked = new Asked(
            clock,
            (id) => datums[id - 1]!.takesMs,
            (id) => datums[id - 1]!.place,
            failing,
          );
          const stream = spaced(
            shapes.map((_, place) => place % 3),
            clock,
            running,
          ).pipe(
            map((place) => shapes[place]!.map(({ length }, within) => datumOf(idOf(place, within), length))),
            operator(asked, ahead),
            map(({ data, position }) => [position, data.map(added)]),
          );
          return { asked, running, stream };
        };
        const all = shapes.map((batch, place) => [
          place,
          batch.map(({ length }, within) => wanted(idOf(place, within), length)),
        ]);
        const clock = clockOf();
        const { asked, running, stream } = work(clock);
        expect(run(stream, clock)).toStrictEqual({ values: all, end: 'complete' });
        expect(asked.ids).toStrictEqual(upTo(datums.length).map((index) => index + 1));
        expect(asked.mostBatches).toBeLessThanOrEqual(ahead + 1);
        expect([asked.open, running.now]).toStrictEqual([0, 0]);

        const second = clockOf();
        const failed = work(second, fails);
        const { values, end } = run(failed.stream, second);
        const failsIn = fails === undefined ? undefined : datums[fails - 1]?.place;
        expect(values).toStrictEqual(all.slice(0, failsIn));
        expect(end).toStrictEqual(failsIn === undefined ? 'complete' : { error: new Error(`no ${fails}`) });
        expect([failed.asked.open, failed.running.now]).toStrictEqual([0, 0]);

        const third = clockOf();
        const left = work(third);
        const before = leaveAt(left.stream, leftMs, third);
        expect(before).toStrictEqual(all.slice(0, before.length));
        expect([left.asked.open, left.running.now]).toStrictEqual([0, 0]);
      },
    ),
    RUNS,
  ));

it('trainPreferences asks about every datum and trains on every batch once, in order; left, it leaves nothing', () =>
  fc.assert(
    fc.property(
      ...([gaps, fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 3 }), moment] as const),
      (all, ahead, referenceAhead, leftMs) => {
        const work = (clock: VirtualTimeScheduler) => {
          const running = { now: 0 };
          const asked = new Asked(
            clock,
            (id) => id % 4,
            (id) => id >> 1,
          );
          const { trainer, log } = fakeTrainer({ scheduler: clock });
          const stream = spaced(all, clock, running).pipe(
            map((place) => [datumOf(2 * place, place + 1), datumOf(2 * place + 1, 1)]),
            trainPreferences(
              {
                ...trainer,
                forwardBackwardCustom: (data, loss) => {
                  log.push(`batch ${data[0]!.modelInput.length - 1}`);
                  return trainer.forwardBackwardCustom(data, loss);
                },
              },
              { loss: dpo(), reference: asked, ahead, referenceAhead, scheduler: clock },
            ),
          );
          return { asked, running, log, stream };
        };
        const told = (log: readonly string[]) => log.filter((call) => /^batch|^optimStep/.test(call));
        const wanted = all.flatMap((_, place) => [`batch ${place}`, 'optimStep {"learningRate":0.0001}']);
        const clock = clockOf();
        const { asked, running, log, stream } = work(clock);
        const { values, end } = run(stream, clock);
        expect(end).toBe('complete');
        expect(values.map(({ index }) => index)).toStrictEqual(upTo(all.length));
        expect(told(log)).toStrictEqual(wanted);
        expect(asked.ids).toStrictEqual(upTo(2 * all.length));
        expect(asked.mostBatches).toBeLessThanOrEqual(referenceAhead + 1);
        expect([asked.open, running.now]).toStrictEqual([0, 0]);

        const other = clockOf();
        const left = work(other);
        let submitted = 0;
        leaveAt(left.stream, leftMs, other, () => (submitted = told(left.log).length));
        expect(told(left.log)).toStrictEqual(wanted.slice(0, submitted));
        expect([left.asked.open, left.running.now]).toStrictEqual([0, 0]);
      },
    ),
    RUNS,
  ));
