import { TinkerError } from '../../../wire/tinkerError.js';

/** Raised if a conversation cannot be written in a family's format, with a sentence that says what to change. */
export class RendererError extends TinkerError {
  readonly code = 'renderer';
}
