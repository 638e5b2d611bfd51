// The three tests of docs/testing.md, "With rxjs-marbles"; test/unit/docs holds the page against this file.
import { concatMap, filter, from, map } from 'rxjs';
import { configure } from 'rxjs-marbles';
import { expect, it } from 'vitest';
import { ModelInput, ServiceClient } from 'tinker-rx';
import { batch, sampleFrom, train } from 'tinker-rx/operators';
import { datum, fakeTransport, refusal } from 'tinker-rx/testing';

const { marbles } = configure({
  run: true,
  frameworkMatcher: true,
  assertDeepEqual: (actual, expected) => expect(actual).toStrictEqual(expected),
});

it(
  'backs off after a 429 for as long as the service says',
  marbles((m) => {
    const slowDown = refusal(429, 'slow down', { 'retry-after': '2' });
    const fake = fakeTransport({ scheduler: m.scheduler, script: { asample: [slowDown] } });
    const service = new ServiceClient(fake.clientOptions);
    service
      .createSamplingClient({ baseModel: 'any' })
      .subscribe((sampler) => void sampler.sample({ prompt: ModelInput.fromInts([1]) }));
    const sent = fake.requests$.pipe(
      filter(({ path }) => path === 'asample'),
      map(() => 'x'),
    );
    m.expect(sent).toBeObservable('x 1999ms x');
  }),
);

it(
  'keeps training in order under a 503',
  marbles((m) => {
    const fake = fakeTransport({ scheduler: m.scheduler, script: { forward_backward: [refusal(503)] } });
    const service = new ServiceClient(fake.clientOptions);
    const steps = service.createLoraTrainingClient({ baseModel: 'any' }).pipe(
      concatMap((trainer) =>
        from([datum(2, 1), datum(3, 1)]).pipe(batch({ size: 1 }), train(trainer, { loss: 'cross_entropy' })),
      ),
      map(({ index, tokens }) => `${index}: ${tokens}`),
    );
    // The first pass is sent again after a second. The second pass waits for it, so the order is kept.
    m.expect(steps).toBeObservable('1s (ab|)', { a: '0: 2', b: '1: 3' });
    m.flush();
    expect(fake.requests.flatMap(({ seqId, path }) => (path === 'forward_backward' ? [seqId] : []))).toEqual([1, 1, 3]);
  }),
);

it(
  'streams sample results as they finish',
  marbles((m) => {
    const fake = fakeTransport({
      scheduler: m.scheduler,
      workMs: ({ json }) => (JSON.stringify(json['prompt']).includes('[1]') ? 5000 : 1000), // the first one is slow
      sample: ({ prompt }) => [[...prompt.toInts(), 7]],
    });
    const service = new ServiceClient(fake.clientOptions);
    const prompts = m.cold('ab|', { a: ModelInput.fromInts([1]), b: ModelInput.fromInts([2]) });
    const results = service.createSamplingClient({ baseModel: 'any' }).pipe(
      concatMap((sampler) => prompts.pipe(sampleFrom(sampler))),
      map(({ response }) => [...response.sequences[0]!.tokens].join(' ')),
    );
    m.expect(results).toBeObservable('1001ms b 3998ms (a|)', { a: '1 7', b: '2 7' });
  }),
);
