/** A refusal with an HTTP status. `detail` goes into the body as FastAPI servers write it: `{ detail }`. */
export class HttpError extends Error {
  override readonly name = 'HttpError';

  constructor(
    readonly status: number,
    readonly detail: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(detail);
  }
}
