import { describe, expect, it } from 'vitest';
import { failureOf } from '../../../src/transport/failureOf.js';
import { TransportFailure, type FailureKind } from '../../../src/transport/Transport.js';
import { connectionError, classifyFailure } from '../../../src/client/connection/failure.js';

const coded = (code: string) => Object.assign(new Error('said'), { code });

describe('a failure of a connection', () => {
  it.each<[string, FailureKind, string, boolean]>([
    ['ECONNRESET', 'connection', 'connection', true],
    ['UND_ERR_SOCKET', 'connection', 'connection', true],
    ['ENOTFOUND', 'connection', 'connection', true],
    ['UND_ERR_CONNECT_TIMEOUT', 'timeout', 'timeout', true],
    ['ETIMEDOUT', 'timeout', 'timeout', true],
    ['UND_ERR_INVALID_ARG', 'request', 'invalid_input', false],
    ['ERR_INVALID_CHAR', 'request', 'invalid_input', false],
    ['ERR_HTTP2_INVALID_CONNECTION_HEADERS', 'request', 'invalid_input', false],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'untrusted', 'connection', false],
    ['CERT_HAS_EXPIRED', 'untrusted', 'connection', false],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'untrusted', 'connection', false],
    ['UND_ERR_HEADERS_OVERFLOW', 'answer', 'invalid_response', false],
  ])('with code %s is of kind %s, an error with code %s, retryable: %s', (code, kind, errorCode, retryable) => {
    const failure = failureOf(coded(code));
    expect(failure).toMatchObject({ kind, message: 'said' });
    const error = connectionError(failure, 'POST /x');
    expect(error).toMatchObject({ code: errorCode, retryable });
    for (const phase of ['send', 'poll', 'sample'] as const)
      expect(classifyFailure(error, phase)).toBe(retryable ? 'backoff' : 'fatal');
  });

  it('without a text says its code', () => {
    expect(failureOf(Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })).message).toBe('ECONNREFUSED');
    expect(failureOf(undefined).message).toBe('the connection failed');
  });

  it('stays what it is', () => {
    const failure = new TransportFailure('timeout', 'late');
    expect(failureOf(failure)).toBe(failure);
  });
});
