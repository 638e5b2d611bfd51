import { NEVER } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { UnsupportedVersionError } from 'tinker-rx';
import { dropped, json, refusal, text, type Reply } from 'tinker-rx/testing';
import { gaps, stage } from './stage.js';

/** The waits between the tries of an optimizer step whose sends are answered so. */
function waits(replies: Reply | readonly Reply[]): { gaps: number[]; error: unknown; on: ReturnType<typeof stage> } {
  const on = stage({ script: { optim_step: replies } });
  let error: unknown;
  on.trainer()
    .optimStep()
    .subscribe({ error: (failure: unknown) => (error = failure) });
  on.clock.advanceBy(1_000_000);
  return { gaps: gaps(on.fake.to('optim_step')), error, on };
}
const UP_TO_FIVE_MINUTES = [1000, 2000, 4000, 8000, 16_000, ...Array<number>(8).fill(30_000), 29_000];

describe('a send', () => {
  it('is tried again after 1, 2, 4 … 30 seconds for five minutes, then fails with the last failure', () => {
    const { gaps: between, error } = waits(refusal(503, 'overloaded'));
    expect(between).toEqual(UP_TO_FIVE_MINUTES);
    expect(error).toMatchObject({
      code: 'server',
      status: 503,
      retryable: true,
      message: 'POST /api/v1/optim_step: 503 overloaded',
    });
  });

  it.each([408, 409, 429, 500, 502, 503, 504, 529])('is tried again after a %i', (status) => {
    expect(waits([refusal(status), refusal(status)]).gaps).toEqual([1000, 2000]);
  });

  it.each([
    [302, 'status'],
    [400, 'bad_request'],
    [401, 'authentication'],
    [403, 'permission_denied'],
    [404, 'not_found'],
    [410, 'gone'],
    [413, 'status'],
    [422, 'unprocessable'],
  ])('fails at once on a %i, with code %s', (status, code) => {
    const { gaps: between, error } = waits(refusal(status, 'no'));
    expect(between).toEqual([]);
    expect(error).toMatchObject({ code, status, retryable: false, body: { detail: 'no' } });
  });

  it('is tried again when the connection breaks, and when no answer comes within a minute', () => {
    expect(waits([dropped(), NEVER, dropped()]).gaps).toEqual([1000, 62_000, 4000]);
  });

  it('is the same request each time: number, key and body', () => {
    const { on } = waits([dropped(), refusal(503), refusal(429)]);
    const tries = on.fake.to('optim_step');
    expect(tries).toHaveLength(4);
    expect(new Set(tries.map(({ headers, body }) => `${headers['x-idempotency-key']} ${String(body)}`)).size).toBe(1);
  });

  it('says of each retry what failed and how long it waits', () => {
    const { on } = waits([refusal(503), dropped('reset by peer')]);
    expect(
      on.eventsOf('request-retry').map(({ path, attempt, delayMs, error }) => [path, attempt, delayMs, error.code]),
    ).toEqual([
      ['optim_step', 1, 1000, 'server'],
      ['optim_step', 2, 2000, 'connection'],
    ]);
  });
});

describe('retry-after', () => {
  // The virtual clock starts at the epoch.
  it.each([
    ['in milliseconds', { 'retry-after-ms': '1500' }, 1500],
    ['in milliseconds before the one in seconds', { 'retry-after-ms': '250', 'retry-after': '9' }, 250],
    ['in seconds', { 'retry-after': '7' }, 7000],
    ['in fractions of a second', { 'retry-after': '0.4' }, 400],
    ['as a date', { 'retry-after': 'Thu, 01 Jan 1970 00:00:05 GMT' }, 5000],
    ['of exactly a minute', { 'retry-after': '60' }, 60_000],
    ['of zero, which counts as not said', { 'retry-after': '0' }, 1000],
    ['of more than a minute, which counts as not said', { 'retry-after': '61' }, 1000],
    ['below zero, which counts as not said', { 'retry-after': '-3' }, 1000],
    ['in the past, which counts as not said', { 'retry-after': 'Wed, 31 Dec 1969 23:59:00 GMT' }, 1000],
    ['that is garbage', { 'retry-after': 'whenever' }, 1000],
    ['that is empty', { 'retry-after': '', 'retry-after-ms': ' ' }, 1000],
  ])('%s', (_, headers, waitMs) => {
    expect(waits([refusal(503, 'later', headers)]).gaps).toEqual([waitMs]);
  });

  it('is used on any status that is tried again', () => {
    for (const status of [408, 409, 429, 500])
      expect(waits([refusal(status, 'later', { 'retry-after': '3' })]).gaps).toEqual([3000]);
  });
});

describe('x-should-retry', () => {
  it('wins over a status that says no', () => {
    expect(
      waits([refusal(400, 'odd', { 'x-should-retry': 'true' }), refusal(404, 'odd', { 'x-should-retry': 'true' })])
        .gaps,
    ).toEqual([1000, 2000]);
  });

  it('wins over a status that says yes', () => {
    const { gaps: between, error } = waits(refusal(503, 'final', { 'x-should-retry': 'false' }));
    expect(between).toEqual([]);
    expect(error).toMatchObject({ status: 503, retryable: false });
  });
});

describe('a 400', () => {
  it('without a body is a proxy: tried again, at most sixteen times', () => {
    const { gaps: between, error } = waits(text(400));
    expect(between).toHaveLength(16);
    expect(error).toMatchObject({ status: 400, message: 'POST /api/v1/optim_step: 400' });
  });

  it('that says the version is no longer supported is a clear error', () => {
    const { error } = waits(refusal(400, 'SDK version 0.36.0 is no longer supported'));
    expect(error).toBeInstanceOf(UnsupportedVersionError);
    expect((error as Error).message).toContain('sdkVersion');
  });

  it('shows what FastAPI says is wrong', () => {
    const detail = [
      { loc: ['body', 'seq_id'], msg: 'field required' },
      { loc: ['body'], msg: 'too large' },
    ];
    const { error } = waits(json({ detail }, { status: 422 }));
    expect((error as Error).message).toBe('POST /api/v1/optim_step: 422 body.seq_id: field required; body: too large');
  });
});

describe('deprecation notes', () => {
  it('of any answer are shown', () => {
    const on = stage({
      script: {
        session_heartbeat: json(
          {},
          { headers: { 'x-deprecation-note': 'please upgrade', 'x-deprecation-level': 'error' } },
        ),
      },
    });
    on.trainer();
    on.clock.advanceTo(10_000);
    expect(on.eventsOf('deprecation-noted')).toEqual([
      { type: 'deprecation-noted', level: 'error', note: 'please upgrade', path: 'session_heartbeat', atMs: 10_000 },
    ]);
  });
});

describe('the key', () => {
  it('goes out as X-API-Key, or as a bearer token where that is wanted', () => {
    const plain = stage();
    plain.trainer();
    expect(plain.fake.requests[0]!.headers).toMatchObject({ 'x-api-key': 'tml-fake' });
    const bearer = stage({}, { auth: 'bearer', apiKey: 'ms-1' });
    bearer.trainer();
    expect(bearer.fake.requests[0]!.headers).toMatchObject({ authorization: 'Bearer ms-1' });
    expect(bearer.fake.requests[0]!.headers).not.toHaveProperty('x-api-key');
    expect(() => stage({}, { auth: 'basic' as never })).toThrow('auth must be x-api-key or bearer, got "basic"');
  });

  it('needs no prefix but at the hosted address', () => {
    expect(() => stage({}, { apiKey: 'sk-other' }).trainer()).not.toThrow();
    const hosted = 'https://tinker.thinkingmachines.dev/services/tinker-prod';
    expect(() => stage({}, { apiKey: 'sk-other', baseUrl: hosted })).toThrow("the API key must start with 'tml-'");
  });
});
