import { defer, map, of, tap } from 'rxjs';
import type { RecordedCall } from '../../sources/fromRecorded.js';
import { isRecord } from '../../support/isRecord.js';
import { messageOf } from '../../support/messageOf.js';
import type { Answer, Endpoint } from '../http/Endpoint.js';
import { Fields } from '../http/Fields.js';
import { GatewayError, toGatewayError } from '../http/GatewayError.js';
import type { CallRecorder } from './CallRecorder.js';
import { readAsked, readSaid } from './readCall.js';
import { joinStream } from './readStream.js';

/** Longest reply that is recorded, in characters. */
const MOST_CHARS = 16 * 1024 * 1024;
/** As nginx logs a caller that hung up. */
const HUNG_UP = 499;

/** The same endpoint, with every call written down when its reply has ended, or its caller has gone. */
export function recordAnswers(endpoint: Endpoint, api: RecordedCall['api'], recorder: CallRecorder): Endpoint {
  return (body, gateway, call) => {
    const startedMs = gateway.nowMs();
    const write = (status: number, reply: () => unknown): void =>
      recorder.record({
        ...{ type: 'call', id: call.requestId, at: new Date(startedMs).toISOString(), api, status },
        latencyMs: gateway.nowMs() - startedMs,
        ...read(() => readAsked(api, body)),
        ...(status >= 400 ? {} : read(() => readSaid(api, reply()))),
      });
    return defer(() => {
      let answered = false;
      return endpoint(body, gateway, call).pipe(
        map((answer) => {
          answered = true;
          return observed(answer, api, write);
        }),
        tap({
          error: (error: unknown) => write(toGatewayError(error).status, nothing),
          unsubscribe: () => answered || write(HUNG_UP, nothing),
        }),
      );
    });
  };
}

const nothing = (): undefined => undefined;

/** What cannot be read is said in the file, and never fails the call. */
function read<T extends object>(make: () => T): T | { readonly problem: string } {
  try {
    return make();
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

function observed(
  answer: Answer,
  api: RecordedCall['api'],
  write: (status: number, reply: () => unknown) => void,
): Answer {
  if ('json' in answer) {
    write(200, () => answer.json);
    return answer;
  }
  const parts: string[] = [];
  let chars = 0;
  const keep = (text: string): void => {
    chars += text.length;
    if (chars <= MOST_CHARS) parts.push(text);
  };
  const kept = (): string => {
    if (chars > MOST_CHARS) throw new Error(`the reply has more than ${MOST_CHARS} characters`);
    return parts.join('');
  };
  const unsubscribe = (): void => write(HUNG_UP, nothing);
  if ('events' in answer) {
    const complete = () => write(200, () => joinStream(api, kept()));
    const error = () => write(500, nothing);
    return { ...answer, events: answer.events.pipe(tap({ next: keep, complete, error, unsubscribe })) };
  }
  const decoder = new TextDecoder();
  const { status, contentType } = answer;
  const whole = () => {
    const text = kept() + decoder.decode();
    return contentType.includes('event-stream') ? joinStream(api, text) : (JSON.parse(text) as unknown);
  };
  const bytes = answer.bytes.pipe(
    tap({
      next: (part) => keep(decoder.decode(part, { stream: true })),
      complete: () => write(status, whole),
      error: () => write(502, nothing),
      unsubscribe,
    }),
  );
  return { ...answer, bytes };
}

const RATINGS: Readonly<Record<string, number>> = { up: 1, good: 1, down: -1, bad: -1 };

/** `POST /feedback`: `{ id, rating?, correction?, comment? }`. */
export const feedbackTo =
  (recorder: CallRecorder): Endpoint =>
  (body) => {
    const fields = new Fields(body);
    const [id, correction, comment] = ['id', 'correction', 'comment'].map((name) => fields.text(name));
    if (id === undefined)
      throw new GatewayError(400, 'id is missing: that of the reply, or its header x-request-id', 'id');
    const given = isRecord(body) ? body['rating'] : undefined;
    const rating = typeof given === 'boolean' ? (given ? 1 : -1) : typeof given === 'string' ? RATINGS[given] : given;
    if (given != null && !(typeof rating === 'number' && Number.isFinite(rating)))
      throw new GatewayError(400, 'rating must be a number, true or false, "up" or "down"', 'rating');
    fields.ignore('rating');
    fields.done();
    if (rating == null && correction === undefined && comment === undefined)
      throw new GatewayError(400, 'rating, correction or comment is missing');
    recorder.feedback({
      id,
      ...(rating == null ? {} : { rating: rating as number }),
      ...(correction === undefined ? {} : { correction }),
      ...(comment === undefined ? {} : { comment }),
    });
    return of({ json: { recorded: true } });
  };
