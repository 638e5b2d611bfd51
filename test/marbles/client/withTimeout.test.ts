import { map } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { withTimeout } from '../../../src/transport/withTimeout.js';
import type { TransportRequest, TransportResponse } from '../../../src/transport/Transport.js';
import { marbles } from '../marbles.js';

const request: TransportRequest = { method: 'POST', path: '/a', lane: 'rest', headers: {}, timeoutMs: 1000 };
const response: TransportResponse = { status: 200, headers: {}, body: new Uint8Array() };
const failure = (seconds: number) =>
  Object.assign(new Error(`no answer within ${seconds} s`), { name: 'TransportFailure' });

describe('withTimeout', () => {
  it.each([
    ['timeoutMs', {}, 1000],
    ['timeoutMs for a small body', { body: 'x'.repeat(63_999) }, 1000],
    ['a second more for every 64 kB of the body', { body: new Uint8Array(130_000) }, 3000],
    ['a second more for every 64 kB of an answer of known size', { answerBytes: 640_000 }, 11_000],
  ])('gives up after %s', (_, more, limitMs) => {
    // prettier-ignore
    marbles((m) => {
      const source = m.cold<TransportResponse>('-------');
      const subs = `                            ^ ${limitMs - 1}ms !`;
      const expected = `                        ${limitMs}ms #`;
      const timed = withTimeout(() => source, m.scheduler)({ ...request, ...more });
      m.expect(timed).toBeObservable(expected, {}, failure(limitMs / 1000));
      m.expect(source).toHaveSubscriptions(subs);
    })();
  });

  it(
    'passes an answer that comes in time',
    marbles((m) => {
      // prettier-ignore
      const source =   m.cold('500ms (a|)', { a: response });
      const expected = '       500ms (a|)';
      const timed = withTimeout(() => source, m.scheduler)(request);
      m.expect(timed.pipe(map(({ status }) => status))).toBeObservable(expected, { a: 200 });
    }),
  );

  it(
    'waits for ever where that is wanted: a time too long for a timer does not end at once',
    marbles((m) => {
      const timed = withTimeout(() => m.cold<TransportResponse>('---'), m.scheduler)({ ...request, timeoutMs: 1e15 });
      m.expect(timed, '9s !').toBeObservable('---');
      expect(timed).toBeDefined();
    }),
  );
});
