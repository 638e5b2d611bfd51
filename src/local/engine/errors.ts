/** The request is wrong, not the engine: the caller can fix it. Maps to category `user` on the wire. */
export class EngineUserError extends Error {
  override readonly name = 'EngineUserError';
  readonly code = 'user';
}

/** The work needs more memory than the engine can have. Later work runs as before. */
export class EngineMemoryError extends Error {
  override readonly name = 'EngineMemoryError';
  readonly code = 'memory';
}

/** The sample was cancelled before it finished. */
export class EngineCancelledError extends Error {
  override readonly name = 'EngineCancelledError';
  readonly code = 'cancelled';
}

/** The engine was closed, or its thread died, while the call was waiting. */
export class EngineClosedError extends Error {
  override readonly name = 'EngineClosedError';
  readonly code = 'closed';
}
