import { TinkerError, type TinkerErrorCode, type TinkerErrorOptions } from '../wire/tinkerError.js';

/** A file or stream that cannot be read; the message names it, `cause` is what the system said. */
export class SourceError extends TinkerError {
  readonly code: TinkerErrorCode = 'source';
  /** The file's path or address. */
  readonly file: string;

  constructor(file: string, reason: string, options: TinkerErrorOptions = {}) {
    super(`${file}: ${reason}`, options);
    this.file = file;
  }
}

/** A row that is not what it should be; the message begins with the file and the line. */
export class BadRowError extends TinkerError {
  readonly code = 'bad_row';
  /** The file's path or address. */
  readonly file: string;
  /** The line in the file, or the row if the file has no lines; counted from 1. */
  readonly line: number;
  /** What is wrong with the row. */
  readonly reason: string;

  constructor(file: string, line: number, reason: string, options: TinkerErrorOptions = {}) {
    super(`${file}:${line}: ${reason}`, options);
    this.file = file;
    this.line = line;
    this.reason = reason;
  }
}
