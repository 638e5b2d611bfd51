import {
  catchError,
  delay,
  EMPTY,
  filter,
  ignoreElements,
  interval,
  map,
  Observable,
  type OperatorFunction,
  tap,
} from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { Gate, withGate } from 'tinker-rx/operators';
import { describe, expect, it } from 'vitest';
import { ModelInput, ServiceClient } from 'tinker-rx';
import { fakeTransport, operatorContract, runMarbles, VirtualClock } from 'tinker-rx/testing';

describe('runMarbles', () => {
  it('ends, though what runs in it never does', () => {
    let beats = 0;
    runMarbles(({ cold, expectObservable }) => {
      interval(1000).subscribe(() => beats++);
      expectObservable(cold('-a-|').pipe(delay(2))).toBe('---(a|)');
    });
    expect(beats).toBe(3600);
    runMarbles(
      ({ cold, expectObservable }) => {
        interval(1000).subscribe(() => beats++);
        expectObservable(cold('a|')).toBe('a|');
      },
      { limitMs: 5000 },
    );
    expect(beats).toBe(3605);
  });

  it('fails where streams differ, and where nothing is expected', () => {
    expect(() => runMarbles(({ cold, expectObservable }) => expectObservable(cold('a|')).toBe('b|'))).toThrow(
      /^expected .*'b'/s,
    );
    expect(() => runMarbles(() => {})).toThrow('the marble test expects nothing');
    expect(() => runMarbles(() => {}, { limitMs: 0 })).toThrow(RangeError);
  });
});

describe('fakeTransport', () => {
  it('ends a TestScheduler that nobody has given an end, and leaves one that has', () => {
    const scheduler = new TestScheduler(() => {});
    const limits: number[] = [];
    scheduler.run(() => {
      const service = new ServiceClient(fakeTransport({ scheduler }).clientOptions);
      service.createLoraTrainingClient({ baseModel: 'any' }).subscribe();
      limits.push(scheduler.maxFrames);
    });
    scheduler.run(() => {
      scheduler.maxFrames = 5;
      fakeTransport({ scheduler });
      limits.push(scheduler.maxFrames);
    });
    expect(limits).toStrictEqual([3_600_000, 5]);
  });

  it('has samples by type: the prompt and how to sample in, tokens out', () => {
    const clock = new VirtualClock();
    const seen: unknown[] = [];
    const fake = fakeTransport({
      scheduler: clock,
      sample: ({ prompt, numSamples, samplingParams, promptLogprobs }) => {
        seen.push([[...prompt.toInts()], numSamples, samplingParams.maxTokens, promptLogprobs]);
        return Array.from({ length: numSamples }, (_, index) => [...prompt.toInts(), index]);
      },
    });
    const service = new ServiceClient(fake.clientOptions);
    const sampler = clock.resolve(service.createSamplingClient({ baseModel: 'any' }));
    const options = { prompt: ModelInput.fromInts([4, 5]), numSamples: 2, samplingParams: { maxTokens: 9 } };
    const { sequences } = clock.resolve(sampler.sample(options));
    expect(seen).toStrictEqual([[[4, 5], 2, 9, false]]);
    expect(sequences.map(({ tokens, stopReason }) => [[...tokens], stopReason])).toStrictEqual([
      [[4, 5, 0], 'stop'],
      [[4, 5, 1], 'stop'],
    ]);
  });
});

describe('operatorContract', () => {
  const failing = (operator: () => OperatorFunction<string, unknown>): string[] =>
    operatorContract({ operator, readsForThree: 3 }).flatMap(({ title, check }) => {
      try {
        check();
        return [];
      } catch {
        return [title];
      }
    });

  it('takes a good operator', () => {
    expect(failing(() => map((value) => `${value}!`))).toStrictEqual([]);
  });

  it.each<[string, () => OperatorFunction<string, unknown>, string]>([
    ['swallows errors', () => catchError(() => EMPTY), 'passes an error of the source'],
    [
      'keeps state between subscribers',
      () => {
        let count = 0;
        return map(() => count++);
      },
      'starts afresh for every subscriber',
    ],
    [
      'stays subscribed',
      () => (source) =>
        new Observable(
          (subscriber) =>
            void source.subscribe({
              next: (value) => subscriber.next(value),
              error: (error: unknown) => subscriber.error(error),
              complete: () => subscriber.complete(),
            }),
        ),
      'unsubscribes from the source when unsubscribed, and emits nothing more',
    ],
    [
      'drops what comes while it emits',
      () => (source) => {
        let busy = false;
        return new Observable((subscriber) =>
          source
            .pipe(
              filter(() => !busy),
              tap((value) => {
                busy = true;
                subscriber.next(value);
                busy = false;
              }),
              ignoreElements(),
            )
            .subscribe(subscriber),
        );
      },
      'ends well, and loses nothing, where the source sends on while a value is handled',
    ],
    [
      'leaves its gate closed',
      () => (source) =>
        new Observable((subscriber) => {
          const gate = new Gate();
          const next = (value: string) => {
            gate.set(false);
            subscriber.next(value);
          };
          return withGate(gate, () => source.pipe(tap({ complete: () => subscriber.complete() })).subscribe(next));
        }),
      'lets a shared source continue when it is unsubscribed while downstream is full',
    ],
  ])('finds one that %s', (_, operator, title) => {
    expect(failing(operator)).toContain(title);
  });
});
