import { toErrorCategory, type RequestFailed } from '../../wire/futures.js';
import { plainText } from '../../support/plainText.js';
import type { Secrets } from '../connection/Secrets.js';
import { serverText } from '../connection/serverText.js';
import { RequestFailedError } from '../errors.js';

/** The error of an answer that reports failed work: under `error`, in whatever shape the server writes it. */
export function requestFailure({ error, category }: RequestFailed, secrets: Secrets, requestId?: string): Error {
  return new RequestFailedError(secrets.redact(failureText(error)), {
    category: toErrorCategory(category),
    requestId,
  });
}

/** What a failed result says; a traceback keeps its lines. */
const failureText = (error: unknown): string =>
  (typeof error === 'string' ? plainText(error) : serverText(error) || serverText({ error })) ||
  'the service gave no reason';
