/** Raised where a conversation cannot be written in a family's format, with a sentence that says what to change. */
export class RendererError extends Error {
  override readonly name = 'RendererError';
  readonly code = 'renderer';
}
