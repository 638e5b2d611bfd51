import { TinkerError } from '../../wire/tinkerError.js';

/** A tokenizer that cannot be had or used, with a sentence that says what to do about it. */
export class TokenizerError extends TinkerError {
  readonly code = 'tokenizer';
}
