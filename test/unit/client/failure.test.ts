import { describe, expect, it } from 'vitest';
import * as errors from '../../../src/client/errors.js';
import {
  connectionError,
  classifyFailure,
  statusError,
  type Meaning,
  type Phase,
} from '../../../src/client/connection/failure.js';
import { TransportFailure } from '../../../src/transport/Transport.js';
import { json, refusal, text } from 'tinker-rx/testing';

const error = (status: number, headers = {}) => statusError(refusal(status, 'said', headers), 'POST /x', 0);

describe('what a failure means', () => {
  it.each<[number, Meaning, Meaning, Meaning]>([
    // status, to a send, to a poll, to a sample
    [400, 'fatal', 'doubtful', 'fatal'],
    [401, 'fatal', 'fatal', 'fatal'],
    [402, 'billing', 'billing', 'billing'],
    [403, 'fatal', 'fatal', 'fatal'],
    [404, 'fatal', 'fatal', 'fatal'],
    [408, 'backoff', 'again', 'backoff'],
    [409, 'backoff', 'backoff', 'backoff'],
    [410, 'fatal', 'resubmit', 'fatal'],
    [422, 'fatal', 'fatal', 'fatal'],
    [429, 'backoff', 'backoff', 'throttle'],
    [500, 'backoff', 'again', 'backoff'],
    [503, 'backoff', 'again', 'backoff'],
    [302, 'fatal', 'fatal', 'fatal'],
  ])('%i is %s to a send, %s to a poll, %s to a sample', (status, ...expected) => {
    const uses: Phase[] = ['send', 'poll', 'sample'];
    expect(uses.map((phase) => classifyFailure(error(status), phase))).toEqual(expected);
  });

  it('is a proxy’s for an empty 400', () => {
    for (const phase of ['send', 'poll', 'sample'] as const)
      expect(classifyFailure(statusError(text(400), 'POST /x', 0), phase)).toBe('proxy');
  });

  it('is told by x-should-retry, but not for a poll', () => {
    expect(classifyFailure(error(404, { 'x-should-retry': 'true' }), 'send')).toBe('backoff');
    expect(classifyFailure(error(503, { 'x-should-retry': 'false' }), 'sample')).toBe('fatal');
    expect(classifyFailure(error(503, { 'x-should-retry': 'false' }), 'poll')).toBe('again');
    expect(classifyFailure(error(503, { 'x-should-retry': 'maybe' }), 'send')).toBe('backoff');
  });

  it('is to try again when no answer came, and final for anything else', () => {
    expect(classifyFailure(connectionError(new TransportFailure('timeout', 'late'), 'x'), 'poll')).toBe('backoff');
    for (const other of [new errors.ValidationError('x'), new errors.ClosedError('x'), new Error('x'), undefined])
      expect(classifyFailure(other, 'poll')).toBe('fatal');
  });
});

describe('the error of a status', () => {
  it.each([
    [400, 'BadRequestError', 'bad_request', false],
    [401, 'AuthenticationError', 'authentication', false],
    [402, 'BillingError', 'billing', true],
    [403, 'PermissionDeniedError', 'permission_denied', false],
    [404, 'NotFoundError', 'not_found', false],
    [409, 'ConflictError', 'conflict', true],
    [410, 'GoneError', 'gone', false],
    [418, 'APIStatusError', 'status', false],
    [422, 'UnprocessableEntityError', 'unprocessable', false],
    [429, 'RateLimitError', 'rate_limit', true],
    [500, 'InternalServerError', 'server', true],
    [599, 'InternalServerError', 'server', true],
  ])('%i is a %s with code %s, retryable: %s', (status, name, code, retryable) => {
    expect(error(status)).toMatchObject({
      name,
      code,
      status,
      retryable,
      body: { detail: 'said' },
      message: `POST /x: ${status} said`,
    });
    expect(error(status)).toBeInstanceOf(errors.APIStatusError);
  });

  it.each<[string, unknown, string]>([
    ['detail', { detail: 'a' }, ' a'],
    ['message', { message: 'b' }, ' b'],
    ['error', { error: 'c' }, ' c'],
    ['a nested error', { error: { code: 7 } }, ' {"code":7}'],
    ['FastAPI’s list', { detail: [{ loc: ['body', 'x'], msg: 'required' }, 'odd'] }, ' body.x: required; "odd"'],
    ['nothing of the kind', { other: 1 }, ''],
    ['null', null, ''],
    ['a long text', { detail: `${'x'.repeat(600)}` }, ` ${'x'.repeat(500)}…`],
    ['several lines', { detail: 'a\n  b\t c' }, ' a b c'],
  ])('says what the service said: %s', (_, body, said) => {
    expect(statusError(json(body, { status: 418 }), 'GET /y', 0).message).toBe(`GET /y: 418${said}`);
  });

  it('takes plain text, and JSON without a content type', () => {
    expect(statusError(text(500, 'Internal Server Error'), 'GET /y', 0).message).toBe(
      'GET /y: 500 Internal Server Error',
    );
    expect(statusError({ ...text(400, ' {"detail":"bad"}'), headers: {} }, 'GET /y', 0).message).toBe(
      'GET /y: 400 bad',
    );
    expect(statusError(text(400, '{broken'), 'GET /y', 0)).toMatchObject({ body: '{broken' });
  });

  it('has the id that the service gave the request', () => {
    expect(error(500, { 'x-request-id': 'req-1' }).requestId).toBe('req-1');
    expect(error(500).requestId).toBeUndefined();
  });
});

describe('a refusal that cannot be read', () => {
  const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
  const status = (body: string | Uint8Array, code = 422) =>
    statusError(
      {
        status: code,
        headers: { 'content-type': 'application/json' },
        body: typeof body === 'string' ? Buffer.from(body) : body,
      },
      'POST /x',
      0,
    );

  it('because a place in it has a toString that is no function is an error like any other', () => {
    expect(status('{"detail":[{"loc":[{"toString":1}],"msg":"x"}]}')).toMatchObject({
      code: 'unprocessable',
      message: 'POST /x: 422 {"toString":1}: x',
    });
  });

  it('because its detail is nested 50,000 deep is an error like any other', () => {
    // Newer releases of Node write such a value, older ones overflow and say that it is nested too deeply.
    for (const detail of [nested(50_000), `[${nested(50_000)}]`, `{"a":${nested(50_000)}}`])
      expect(status(`{"detail":${detail}}`).message).toMatch(/^POST \/x: 422 [[{]/);
    expect(status(nested(50_000)).status).toBe(422);
  });

  it('because it is larger than a text can be is an error like any other', () => {
    // Longer than V8's longest text, and made of memory that is never touched.
    const huge = new Uint8Array(600 * 1024 * 1024);
    expect(status(huge, 503)).toMatchObject({ code: 'server', retryable: true });
  });

  it('because it lists 300,000 mistakes names the first', () => {
    const detail = Array.from({ length: 300_000 }, (_, index) => ({ loc: ['body', index], msg: 'bad' }));
    expect(status(JSON.stringify({ detail })).message).toBe(
      'POST /x: 422 body.0: bad; body.1: bad; body.2: bad; body.3: bad; body.4: bad; and 299995 more',
    );
  });

  it('does not bring terminal escapes into its message', () => {
    expect(status('{"detail":"\\u001b[31mred\\u001b[0m \\u009b2J \\u202egnorw\\u0007"}').message).toBe(
      'POST /x: 422 [31mred [0m 2J gnorw',
    );
  });
});

describe('the wait that a server asks for', () => {
  it.each([
    ['seconds', { 'retry-after': '7' }, 7000],
    ['milliseconds', { 'retry-after-ms': '250' }, 250],
    ['a date', { 'retry-after': 'Thu, 01 Jan 1970 00:01:10 GMT' }, 10_000],
    ['more than a minute', { 'retry-after': '3600' }, undefined],
    ['nothing', {}, undefined],
  ])('is in the error, from %s', (_, headers, expected) => {
    expect(statusError(refusal(429, 'slow down', headers), 'POST /x', 60_000).retryAfterMs).toBe(expected);
  });
});

describe('errors', () => {
  it('are known by a brand that survives two copies of the package', () => {
    expect(errors.isTinkerError(error(500))).toBe(true);
    expect(errors.isTinkerError({ [Symbol.for('tinker-rx/error')]: true })).toBe(true);
    for (const other of [new Error('x'), null, undefined, 'x', {}]) expect(errors.isTinkerError(other)).toBe(false);
  });

  it('keep their cause', () => {
    const cause = new TransportFailure('connection', 'reset');
    const failed = connectionError(cause, 'POST /x');
    expect(failed).toMatchObject({ code: 'connection', message: 'POST /x: reset', cause, retryable: true });
    expect(connectionError(new TransportFailure('timeout', 'late'), 'x')).toBeInstanceOf(errors.APITimeoutError);
  });

  it('are the user’s for 4xx but 408 and 429, for bad input, and where the service says so', () => {
    const user = [400, 401, 402, 403, 404, 410, 422].map((status) => error(status));
    const others = [408, 429, 500, 503].map((status) => error(status));
    user.push(new errors.ValidationError('x') as never, new errors.CustomLossError('x') as never);
    user.push(new errors.RequestFailedError('x', { category: 'user' }) as never);
    others.push(
      new errors.RequestFailedError('x', { category: 'server' }) as never,
      new errors.ClosedError('x') as never,
    );
    expect(user.map(errors.isUserError)).toEqual(user.map(() => true));
    expect(others.map(errors.isUserError)).toEqual(others.map(() => false));
    expect(errors.isUserError(new Error('x'))).toBe(false);
  });

  it('have a code of their own each', () => {
    const classes = Object.values(errors).filter(
      (value) => typeof value === 'function' && value.prototype instanceof Error,
    ) as (new (message: string, options: object) => errors.TinkerError)[];
    const codes = classes
      .filter((Class) => Class !== (errors.TinkerError as unknown))
      .map((Class) => new Class('x', { status: 0, headers: {}, body: '', category: 'user' }).code);
    expect(new Set(codes).size).toBe(codes.length);
    expect(codes).not.toContain(undefined);
  });
});
