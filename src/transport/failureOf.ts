import { TransportFailure, type FailureKind } from './Transport.js';

/** The request itself is malformed: it would be refused as often as it is tried. */
const UNSENDABLE =
  /^(UND_ERR_(INVALID_ARG|INVALID_RETURN_VALUE|NOT_SUPPORTED|REQ_CONTENT_LENGTH_MISMATCH)|ERR_(INVALID_|HTTP_INVALID_|HTTP2_INVALID_|HTTP2_HEADER_|HTTP2_CONNECT_|HTTP2_STATUS_)\w*)$/;
/** The server's certificate is not trusted, and time will not change that. */
const UNTRUSTED =
  /^(ERR_TLS_CERT_\w+|CERT_\w+|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(GET_ISSUER_CERT|VERIFY_LEAF_SIGNATURE)\w*|HOSTNAME_MISMATCH)$/;
/** The server closed a connection that was open. */
const RESET = /^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/;

/** What a failure of a connection means, by its code. `hasBegun`: whether any byte of the answer had arrived. */
export function failureOf(error: unknown, hasBegun = true): TransportFailure {
  if (error instanceof TransportFailure) return error;
  const { code, message } = (typeof error === 'object' && error !== null ? error : {}) as {
    code?: unknown;
    message?: unknown;
  };
  const name = typeof code === 'string' ? code : '';
  // An attempt at several addresses fails with a list of errors and no text.
  const said = typeof message === 'string' && message !== '' ? message : name || 'the connection failed';
  return new TransportFailure(kindOf(name, said, hasBegun), said, error);
}

function kindOf(code: string, message: string, hasBegun: boolean): FailureKind {
  if (UNSENDABLE.test(code)) return 'request';
  if (UNTRUSTED.test(code)) return 'untrusted';
  if (/Proxy response \(407\)/.test(message)) return 'proxy';
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return 'answer';
  if (/TIMEOUT|ETIMEDOUT/.test(code)) return 'timeout';
  return RESET.test(code) && !hasBegun ? 'reset' : 'connection';
}
