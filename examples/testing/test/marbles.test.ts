// The service is a script, its answers are marble diagrams, and hours take milliseconds.
import { concatMap, filter, from, map, type Observable } from 'rxjs';
import { describe, it } from 'vitest';
import { ServiceClient } from 'tinker-rx';
import { type FakeRequest, fakeTransport, refusal } from 'tinker-rx/testing';
import { ask, fineTune } from '../src/pipeline.js';
import { capitals, renderer } from './conversations.js';
import { marbles } from './marbles.js';

const sends = (requests$: Observable<FakeRequest>, path: string): Observable<string> =>
  requests$.pipe(filter((request) => request.path === path), map(() => 'x')); // prettier-ignore

describe('sampling', () => {
  // prettier-ignore
  it('a 429 holds back every question for as long as the service says, and loses none', marbles(60_000, ({ scheduler, hot, expectObservable }) => {
    const fake = fakeTransport({ scheduler, script: { asample: [refusal(429, 'slow down', { 'retry-after': '2' })] } });
    const service = new ServiceClient(fake.clientOptions);
    const questions = hot('a 499ms b 4499ms c|', { a: 'one?', b: 'two?', c: 'three?' });
    const sent = '         x 1999ms (xx) 2996ms x';       // refused, then again with b behind it; c is on time
    const answered = '     2s (ab) 2996ms c|';
    const answers = service.createSamplingClient({ baseModel: 'any' }).pipe(
      concatMap((sampler) => ask(questions, sampler, renderer)),
      map(({ question }) => question),
    );
    expectObservable(sends(fake.requests$, 'asample')).toBe(sent);
    expectObservable(answers).toBe(answered, { a: 'one?', b: 'two?', c: 'three?' });
  }));
});

describe('training', () => {
  const steps = (service: ServiceClient): Observable<number> =>
    service.createLoraTrainingClient({ baseModel: 'any' }).pipe(
      concatMap((trainer) => fineTune(from(capitals), trainer, renderer)),
      map(({ index }) => index),
    );

  // prettier-ignore
  it('a refusal that takes three seconds costs those and one of waiting', marbles(60_000, ({ scheduler, cold, expectObservable }) => {
    const refused = cold('3s r|', { r: refusal(503) });
    const sent = '        x 3999ms (xx)';
    const expected = '    4s (01|)';
    const fake = fakeTransport({ scheduler, script: { optim_step: [refused] } });
    expectObservable(steps(new ServiceClient(fake.clientOptions))).toBe(expected, [0, 1]);
    expectObservable(sends(fake.requests$, 'optim_step')).toBe(sent);
  }));

  // prettier-ignore
  it('an hour without credit is waited for, and the run goes on where it was', marbles(2 * 3_600_000, ({ scheduler, expectObservable }) => {
    const fake = fakeTransport({
      scheduler,
      script: { optim_step: ({ atMs }) => (atMs < 3_600_000 ? refusal(402, 'no credit') : undefined) },
    });
    expectObservable(steps(new ServiceClient(fake.clientOptions))).toBe('60m (01|)', [0, 1]);
  }));
});
