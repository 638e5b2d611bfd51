export interface CliErrorOptions {
  /** What to do about it, or more of what happened; printed below the message. */
  readonly details?: string;
  /** Default 1; 2 is for a command that was written wrongly. */
  readonly exitCode?: number;
}

/** A failure to be told in one sentence, without a stack. */
export class CliError extends Error {
  readonly details: string | undefined;
  readonly exitCode: number;

  constructor(message: string, { details, exitCode = 1 }: CliErrorOptions = {}) {
    super(message);
    this.details = details;
    this.exitCode = exitCode;
  }
}
