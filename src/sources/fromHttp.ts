import { Observable } from 'rxjs';
import { findGate } from '../operators/pressure/shared/backpressureEvents.js';
import { withGate } from '../operators/pressure/gate.js';
import { checkIntegers } from '../support/checks.js';
import { isLoopback } from '../support/http/access.js';
import { isRecord } from '../support/isRecord.js';
import { messageOf } from '../support/messageOf.js';
import { checkRow } from './internal/checkRow.js';
import { RowServer } from './internal/RowServer.js';
import type { RowSchema } from './RowSchema.js';
import { SourceError } from './SourceError.js';

/** Options of `fromHttp`. */
export interface FromHttpOptions<T> {
  /** The port to listen on; 0 is any free one, which `onListening` tells. */
  readonly port: number;
  /** The address to listen on. Default `127.0.0.1`. Any other than loopback needs a `key`. */
  readonly host?: string;
  /** The path that rows are posted to. Default `/`. */
  readonly path?: string;
  /** How rows are checked: zod, io-ts, or a function that returns the row or throws. Default: any JSON object. */
  readonly schema?: RowSchema<T>;
  /** What clients send as `Authorization: Bearer …`, of at least 8 characters. Default: none is needed. */
  readonly key?: string;
  /** Names that clients and web pages may use for this server, beside loopback names. Default none. */
  readonly allowedHosts?: readonly string[];
  /** The largest body, in bytes: ≥ 1. Default 1,048,576. */
  readonly maxBodyBytes?: number;
  /** What clients are told to wait while there is no room, in seconds: ≥ 0. Default 1. */
  readonly retryAfterSeconds?: number;
  /** Called with the address, such as `http://127.0.0.1:41357/feedback`, when the server listens. */
  readonly onListening?: (url: string) => void;
}

/**
 * Rows that clients POST: feedback of a product, as it comes.
 *
 * ```ts
 * fromHttp({ port: 8080, path: '/feedback', schema: toPreference }).pipe(
 *   toJsonl('feedback.jsonl'),
 *   toPairs(renderer),
 *   batch({ size: 16 }),
 *   map((pairs) => pairs.flat()),
 *   trainPreferences(trainer, options),
 * )
 * ```
 * Subscribing listens; unsubscribing closes the server. A body is one JSON object, an array of them, or JSON lines. All of its rows are
 * taken, or none:
 *
 * | status | |
 * | --- | --- |
 * | 202 | every row was handed on, once and in order |
 * | 400 | a row is bad: the body says which, where, and what was expected |
 * | 401, 403 | the key, the Host or the Origin is wrong |
 * | 413 | the body is too large |
 * | 503 | no room: the bounded operator downstream is full, or the stream has ended. `retry-after` says when to try again |
 *
 * The answer 202 is sent after the rows were handed on, so what stands behind the source has seen them: behind `toJsonl`, they are in the
 * file. If the stream ends in the middle of a body, the answer is 503, and `accepted` in its body says how many rows were handed on. What
 * the pipeline has not trained on when it fails, or the process ends, is lost with it, 202 or not: write rows to a file first, as above, or
 * take them from a queue that is acknowledged after the step (docs/live-feedback.md).
 *
 * Never completes. A port that cannot be listened on is a `SourceError`. Holds the rows of one body, while the gate is closed in the middle
 * of it, and up to 64 bodies that are arriving; others are answered 503. Without a bounded operator downstream there is always room.
 *
 * @see docs/live-feedback.md
 */
export function fromHttp<T = Readonly<Record<string, unknown>>>({
  port,
  host = '127.0.0.1',
  path = '/',
  schema,
  key,
  allowedHosts = [],
  maxBodyBytes = 1_048_576,
  retryAfterSeconds = 1,
  onListening = () => {},
}: FromHttpOptions<T>): Observable<T> {
  checkIntegers({ port, retryAfterSeconds }, 0);
  checkIntegers({ maxBodyBytes }, 1);
  if (!path.startsWith('/')) throw new RangeError(`path must begin with /, got '${path}'`);
  if (key !== undefined && key.length < 8) throw new RangeError('key must have at least 8 characters');
  if (key === undefined && !isLoopback(host)) throw new RangeError(`key is needed to listen on ${host}`);
  const check = (row: unknown) => (schema === undefined ? (anyRecord(row) as T) : checkRow(schema, row));

  return new Observable((subscriber) => {
    const gate = findGate('fromHttp');
    let body: Taken<T> | undefined;
    let stopWaiting: (() => void) | undefined;
    const answer = () => {
      const { accepted, answered } = body!;
      body = undefined;
      answered(accepted);
    };
    const handOn = () => {
      while (body !== undefined && !subscriber.closed) {
        if (body.accepted === body.rows.length) return answer();
        if (gate?.isOpen === false) {
          stopWaiting = gate.onceOpen(() => withGate(gate, handOn));
          return;
        }
        subscriber.next(body.rows[body.accepted++] as T);
      }
    };
    const server = new RowServer<T>({
      ...{ host, path, key, allowedHosts, maxBodyBytes, retryAfterSeconds, check },
      isFull: () => subscriber.closed || body !== undefined || gate?.isOpen === false,
      take: (rows, answered) => {
        body = { rows, answered, accepted: 0 };
        withGate(gate, handOn);
      },
    });
    const listening = server.listen(port);
    const fail = (error: unknown) => withGate(gate, () => subscriber.error(error));
    listening
      .then(
        (url) => {
          if (!subscriber.closed) onListening(url);
        },
        (cause: unknown) => fail(new SourceError(`http://${host}:${port}`, messageOf(cause), { cause })),
      )
      .catch(fail);
    return () => {
      stopWaiting?.();
      if (body !== undefined) answer();
      // A server that is about to listen cannot be closed yet.
      void listening.then(
        () => server.close(),
        () => {},
      );
    };
  });
}

/** The body whose rows are being handed on. */
interface Taken<T> {
  readonly rows: readonly T[];
  readonly answered: (accepted: number) => void;
  accepted: number;
}

function anyRecord(row: unknown): unknown {
  if (!isRecord(row)) throw new Error('expected an object');
  return row;
}
