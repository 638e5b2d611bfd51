import { messageOf } from '../../support/messageOf.js';
import { EngineCancelledError, EngineUserError } from '../engine/errors.js';
import { isTinkerError } from '../../wire/index.js';
import type { FutureFailure } from './localFuture.js';

/** A mistake of the caller that is found only when the work runs: its future fails with category `user`. */
export class UserError extends Error {
  override readonly name = 'UserError';
}

/** What a thrown error means for the future of the work that threw it. */
export function toFailure(error: unknown): FutureFailure {
  const message = messageOf(error);
  const isUser =
    error instanceof UserError ||
    error instanceof EngineUserError ||
    error instanceof EngineCancelledError ||
    // The wire's own checks (shapes, spans, paths) speak about what the caller sent.
    isTinkerError(error);
  if (isUser) return { error: message, category: 'user' };
  return { error: message, category: 'server' };
}
