import { catchError, concatMap, defer, from, map, type Observable, of, throwError } from 'rxjs';
import type { ValidateFunction } from 'ajv';
import { GatewayError } from '../http/GatewayError.js';
import type { ChatReply, ChatRequest } from '../completion/ChatRequest.js';

/** JSON as an answer: any object, or one that fits a schema. */
export interface JsonWish {
  readonly schema: object | undefined;
}

/** The wish in words, in the system message: sampling itself cannot be constrained through this protocol. */
export function askForJson(request: ChatRequest, { schema }: JsonWish): ChatRequest {
  const wish =
    schema === undefined
      ? 'Answer with JSON only.'
      : `Answer with JSON only, matching this JSON schema:\n${JSON.stringify(schema)}`;
  const [first, ...rest] = request.messages;
  const messages =
    first?.role === 'system' && typeof first.content === 'string'
      ? [{ ...first, content: `${first.content}\n\n${wish}` }, ...rest]
      : [{ role: 'system', content: wish }, ...request.messages];
  return { ...request, messages };
}

/**
 * Samples until the text is JSON that fits, `retries` more times at most. A reply that calls tools, or was cut off by
 * its own limit, is handed on as it is.
 *
 * @returns fails with a GatewayError 422 that says what did not fit the last time
 */
export function untilJson(sample: Observable<ChatReply>, { schema }: JsonWish, retries: number): Observable<ChatReply> {
  return defer(() => compile(schema)).pipe(
    concatMap((complaint) => {
      const attempt = (left: number): Observable<ChatReply> =>
        sample.pipe(
          concatMap((reply) => {
            const wrong = reply.finish === 'stop' ? complaint(reply.text) : undefined;
            if (wrong === undefined) return of(reply);
            if (left > 0) return attempt(left - 1);
            return throwError(
              () => new GatewayError(422, `the model's answer is not the JSON that was asked for: ${wrong}`),
            );
          }),
        );
      return attempt(retries);
    }),
  );
}

type Complaint = (text: string) => string | undefined;

function compile(schema: object | undefined): Observable<Complaint> {
  if (schema === undefined) return of((text: string) => read(text).wrong);
  // Only who asks for a schema pays for loading the validator.
  return from(import('ajv')).pipe(
    map(({ Ajv }) => new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(schema)),
    catchError((error: unknown) =>
      throwError(() => new GatewayError(400, `the JSON schema cannot be used: ${(error as Error).message}`)),
    ),
    map((validate) => (text: string) => complaintOf(text, validate)),
  );
}

function complaintOf(text: string, validate: ValidateFunction): string | undefined {
  const { value, wrong } = read(text);
  if (wrong !== undefined || validate(value)) return wrong;
  return (validate.errors ?? [])
    .map(({ instancePath, message }) => `${instancePath || '/'} ${message ?? ''}`)
    .join('; ');
}

function read(text: string): { readonly value?: unknown; readonly wrong?: string } {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { wrong: (error as Error).message };
  }
}
