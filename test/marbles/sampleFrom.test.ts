import { isLeft, isRight } from 'fp-ts/lib/Either.js';
import { EMPTY, from, lastValueFrom, map, NEVER, Observable, of, throwError, timer, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { SampleOptions, SamplingClient } from '../../src/client/SamplingClient.js';
import { batch } from '../../src/operators/data/batch.js';
import { concatMapAhead } from '../../src/operators/flow/concatMapAhead.js';
import type { DeadLetter } from '../../src/operators/flow/FailurePolicy.js';
import { type Sampleable, sampleFrom } from '../../src/operators/sampling/sampleFrom.js';
import { ModelInput } from '../../src/wire/modelInput.js';
import type { SampleResponse } from '../../src/wire/sampling.js';
import { keepsContract, throwing } from './contract.js';
import { gated } from './gated.js';
import { marbles } from './marbles.js';

const prompt = (tokens = 1) => ModelInput.fromInts(Array.from({ length: tokens }, (_, place) => place));
const response: SampleResponse = { sequences: [], promptCacheHitTokens: 0 };

/** A sampler that answers after a while, remembers what it was asked and what was cancelled. */
function sampler(name: string, delayMs: (options: SampleOptions) => number = () => 0) {
  const asked: SampleOptions[] = [];
  let cancelled = 0;
  const fake = {
    name,
    sample: (options: SampleOptions): Observable<SampleResponse> => {
      asked.push(options);
      const answer = timer(delayMs(options)).pipe(map(() => response));
      return Object.assign(new Observable<SampleResponse>((subscriber) => answer.subscribe(subscriber)), {
        cancel: () => cancelled++,
      });
    },
  } satisfies Sampleable & { name: string };
  return { fake, asked, cancelled: () => cancelled };
}
const instant = (): Sampleable => ({ sample: () => of(response) });

describe('sampleFrom', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map((item) => ({ item, prompt: prompt() })),
        sampleFrom(instant()),
        map(({ item }) => item.item),
      ),
    readsForThree: 3,
    throwing: () => sampleFrom({ sample: throwing }, { request: () => ({ prompt: prompt() }) }),
  });

  it('takes the real client', () => {
    const check = (client: SamplingClient): Sampleable => client;
    expect(check).toBeTypeOf('function');
  });

  it(
    'emits results as they come, each with its item and its sampler',
    marbles((m) => {
      const { fake } = sampler('s', ({ prompt }) => prompt.length);
      const source = m.cold('  -a-b-|', { a: prompt(6), b: prompt(1) });
      const expected = '       ----b--(a|)';
      const result = source.pipe(
        sampleFrom(fake),
        map(({ item, sampler, response: given }) => [item.length === 6 ? 'a' : 'b', sampler.name, given]),
      );
      m.expect(result).toBeObservable(expected, { a: ['a', 's', response], b: ['b', 's', response] });
    }),
  );

  it('asks with the options it has, or those it is given for an item', async () => {
    const { fake, asked } = sampler('s');
    const shared = { numSamples: 4, samplingParams: { maxTokens: 9 } };
    await lastValueFrom(of(prompt()).pipe(sampleFrom(fake, shared)));
    const request = (tokens: number) => ({ prompt: prompt(tokens), numSamples: tokens });
    await lastValueFrom(of(3).pipe(sampleFrom(fake, { ...shared, request })));
    expect(asked).toStrictEqual([
      { ...shared, prompt: prompt() },
      { ...shared, prompt: prompt(3), numSamples: 3 },
    ]);
  });

  it(
    'uses the newest sampler there is when a prompt is admitted, and waits for a first',
    marbles((m) => {
      const [x, y] = [sampler('x', () => 4).fake, sampler('y', () => 4).fake];
      const source = m.cold('  ab------cd|', { a: prompt(), b: prompt(), c: prompt(), d: prompt() });
      const samplers = m.cold('--x------y--', { x, y });
      const expected = '       ------(xx)--x(y|)';
      const result = source.pipe(
        sampleFrom(samplers),
        map(({ sampler }) => sampler.name),
      );
      m.expect(result).toBeObservable(expected);
    }),
  );

  it(
    'keeps to the budget of bytes, ten a token, and to the concurrency',
    marbles((m) => {
      const source = m.cold('  (abc|)', { a: prompt(10), b: prompt(10), c: prompt(10) });
      const expected = '       ----(xx)(x|)';
      const bytes = sampler('x', () => 4).fake;
      const names = map(({ sampler }: { sampler: { name: string } }) => sampler.name);
      // Two are in (200 bytes): the balance is below 0.
      m.expect(source.pipe(sampleFrom(bytes, { budgetBytes: 199 }), names)).toBeObservable(expected);
      m.expect(source.pipe(sampleFrom(bytes, { concurrency: 2 }), names)).toBeObservable(expected);
      const budgetBytes = m.cold('--b', { b: 1000 });
      m.expect(source.pipe(sampleFrom(bytes, { budgetBytes }), names)).toBeObservable('------(xxx|)');
      m.expect(source.pipe(sampleFrom(of(bytes), { budgetBytes }), names)).toBeObservable('------(xxx|)');
    }),
  );

  it('settles: one bad prompt does not end the stream', async () => {
    const failing: Sampleable = {
      sample: ({ prompt: given }) => (given.length === 2 ? throwError(() => new Error('refused')) : of(response)),
    };
    // What types would refuse.
    const items = [prompt(1), prompt(2), 'no prompt' as unknown as ModelInput, prompt(3)];
    const results = await lastValueFrom(from(items).pipe(sampleFrom(failing, { settle: true }), toArray()));
    expect(
      results.map((result) => (isRight(result) ? 'right' : `${result.left.error.code}: ${result.left.error.message}`)),
    ).toStrictEqual([
      'right',
      'request_failed: refused',
      'invalid_input: an item must be a ModelInput, or have one as `prompt`',
      'right',
    ]);
    expect(results.filter(isLeft).map(({ left }) => left.item)).toStrictEqual([items[1], items[2]]);
  });

  it(
    'fails with a sample, and cancels the others',
    marbles((m) => {
      const { fake, cancelled } = sampler('x', () => 9);
      const source = m.cold('  -a-b---|', { a: prompt(1), b: prompt(2) });
      const expected = '       ---#';
      const mixed: Sampleable = {
        sample: (options) => (options.prompt.length === 2 ? throwError(() => new Error('no')) : fake.sample(options)),
      };
      m.expect(source.pipe(sampleFrom(mixed))).toBeObservable(expected, undefined, new Error('no'));
      m.flush();
      expect(cancelled()).toBe(1);
    }),
  );

  it(
    'cancels what is under way when unsubscribed, and nothing that is done',
    marbles((m) => {
      const { fake, cancelled } = sampler('x', ({ prompt: given }) => given.length);
      const source = m.cold('  (ab)', { a: prompt(2), b: prompt(9) });
      const unsub = '          ----!';
      const expected = '       --x--';
      const result = source.pipe(
        sampleFrom(fake),
        map(() => 'x'),
      );
      m.expect(result, unsub).toBeObservable(expected);
      m.flush();
      expect(cancelled()).toBe(1);
    }),
  );

  it(
    'fails when the stream of samplers fails or ends without one',
    marbles((m) => {
      const source = m.cold('  a---', { a: prompt() });
      const failing = m.cold<Sampleable>('--#');
      m.expect(source.pipe(sampleFrom(failing))).toBeObservable('--#');
      const message = 'the stream of samplers ended without a sampler';
      m.expect(source.pipe(sampleFrom(EMPTY as Observable<Sampleable>))).toBeObservable(
        '#',
        undefined,
        new Error(message),
      );
    }),
  );

  it(
    'goes on with the last sampler when their stream has ended',
    marbles((m) => {
      const source = m.cold('  ---a|', { a: prompt() });
      const expected = '       ---x|';
      const samplers = of({ ...instant(), name: 'x' });
      const result = source.pipe(
        sampleFrom(samplers),
        map(({ sampler }) => sampler.name),
      );
      m.expect(result).toBeObservable(expected);
    }),
  );

  it('samples nothing that training has no room for', () => {
    const { source, sent } = gated();
    source
      .pipe(
        map(() => prompt()),
        sampleFrom(instant()),
        batch({ size: 8 }),
        concatMapAhead(() => NEVER, { ahead: 1 }),
      )
      .subscribe();
    expect(sent()).toBe(16);
  });

  it('tries a prompt again, and keeps those that fail for good', () => {
    const failures = new Map([
      [1, 1],
      [2, 9],
    ]);
    const flaky: Sampleable = {
      sample: ({ prompt: { length } }) => {
        const left = failures.get(length) ?? 0;
        failures.set(length, left - 1);
        return left > 0 ? throwError(() => new Error(`no ${length}`)) : of(response);
      },
    };
    const letters: DeadLetter<ModelInput>[] = [];
    const deadLetters = (letter: DeadLetter<ModelInput>) => void letters.push(letter);
    const seen: number[] = [];
    from([1, 2, 3].map(prompt))
      .pipe(sampleFrom(flaky, { onFailure: { retries: 2, deadLetters } }))
      .subscribe(({ item }) => seen.push(item.length));
    expect(seen).toStrictEqual([1, 3]);
    expect(letters).toMatchObject([{ item: { length: 2 }, error: { message: 'no 2' }, attempts: 3 }]);
  });

  it.each([
    ['fail', [1], ['Error: no 2']],
    ['skip', [1, 3], []],
    [{ retries: 1 }, [1], ['Error: no 2']],
  ] as const)('with the policy %j ends or goes on', (onFailure, expected, failed) => {
    const broken: Sampleable = {
      sample: ({ prompt: { length } }) => (length === 2 ? throwError(() => new Error('no 2')) : of(response)),
    };
    const [seen, errors]: [number[], string[]] = [[], []];
    from([1, 2, 3].map(prompt))
      .pipe(sampleFrom(broken, { onFailure }))
      .subscribe({ next: ({ item }) => seen.push(item.length), error: (error) => errors.push(String(error)) });
    expect([seen, errors]).toStrictEqual([expected, failed]);
  });

  it('refuses settle together with a policy', () => {
    expect(() => sampleFrom(instant(), { settle: true, onFailure: 'skip' })).toThrow(RangeError);
  });
});
