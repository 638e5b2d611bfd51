import {
  catchError,
  concatAll,
  concatMap,
  defer,
  forkJoin,
  from,
  map,
  of,
  takeUntil,
  takeWhile,
  tap,
  toArray,
  type Observable,
} from 'rxjs';
import type { TransportResponse } from '../../transport/Transport.js';
import { mayHaveArrived, provesRefusal } from '../connection/failure.js';
import { retryFailures } from '../connection/retryFailures.js';
import { MissingRequestError, type TinkerError } from '../errors.js';
import type { RequestType, WorkKind } from '../events.js';
import { accept } from '../results/awaitResult.js';
import type { Accepted } from '../results/work.js';
import type { OpenSession } from '../session/Session.js';
import type { OnAccepted } from '../TinkerFuture.js';

/** One request of a model's turn, with its number. Each time it is sent, it is the same bytes under the same key. */
export interface NumberedRequest {
  readonly seqId: number;
  /** What it takes from the budget of training bytes; 0 for requests without data. */
  readonly bytes: number;
  readonly path: string;
  /** What distinguishes it from another request with the same number. */
  readonly content: () => string | Uint8Array;
  /** One try per subscription. */
  readonly attempt: Observable<TransportResponse>;
}

/** Sends the requests that `make` numbers from `firstSeqId` on, and emits when the service has accepted all of them. */
export type Submit = (
  requestType: RequestType,
  make: (firstSeqId: number) => readonly NumberedRequest[],
  onAccepted: OnAccepted,
) => Observable<Accepted[]>;

type Outcome = { readonly accepted: Accepted } | { readonly error: TinkerError; readonly refused: boolean };

/** Requests that failed though the service may have some of them, so that their numbers cannot be given to others. */
interface Unsettled {
  readonly requests: readonly NumberedRequest[];
  readonly contents: readonly (string | Uint8Array)[];
  readonly missingSeqId: number;
  readonly cause: TinkerError;
}

/**
 * Numbers the requests of one model and sends them, one turn after the other.
 *
 * The service runs a model's work by number and waits forever for a number that never comes. So a number counts as used
 * only when the service has accepted it: a call that was refused gives its number to the next one. Where a failure leaves
 * open whether the service has the request, or it has a part of it, only the very same call may follow, under the same
 * numbers; every other call fails at once and says so.
 */
export class NumberedSends {
  readonly #session: OpenSession;
  #nextSeqId = 1;
  #unsettled: Unsettled | undefined;
  /** How often requests were left unsettled. Calls made before the latest failure are not retries of it. */
  #timesUnsettled = 0;

  constructor(
    session: OpenSession,
    readonly modelId: string,
  ) {
    this.#session = session;
  }

  /** The function that sends the requests of a call made now, for when its turn comes. */
  forCallMadeNow(): Submit {
    const madeAfter = this.#timesUnsettled;
    return (requestType, make, onAccepted) =>
      defer(() => {
        const made = make(this.#nextSeqId);
        const requests = this.#unsettled === undefined ? made : this.#repeated(made, madeAfter, this.#unsettled);
        const kind = { requestType, target: this.modelId };
        const sends = requests.map((request) => this.#send(kind, request, onAccepted));
        return this.#inOrder(sends).pipe(map((outcomes) => this.#settle(requests, outcomes)));
      }).pipe(takeUntil(this.#session.connection.closing));
  }

  #inOrder(sends: readonly Observable<Outcome>[]): Observable<Outcome[]> {
    const { connection, wireFormat } = this.#session;
    const [first, ...rest] = sends;
    if (first === undefined || rest.length === 0 || !connection.config.parallelFwdbwdChunks || wireFormat.byArrival)
      return from(sends).pipe(concatAll(), takeWhile(isAccepted, true), toArray());
    // The server starts when the first chunk arrives: by then it should have the others.
    return forkJoin(rest).pipe(
      concatMap((others) =>
        others.every(isAccepted) ? first.pipe(map((outcome) => [outcome, ...others])) : of(others),
      ),
    );
  }

  #send(kind: WorkKind, request: NumberedRequest, onAccepted: OnAccepted): Observable<Outcome> {
    const { connection, trainingBytes } = this.#session;
    const { seqId, bytes, path, attempt } = request;
    let uncertain = false;
    const send = defer(() => {
      const sent = { ...kind, seqId, bytes, startedMs: connection.scheduler.now() };
      return attempt.pipe(
        tap({ error: (error: unknown) => (uncertain ||= mayHaveArrived(error)) }),
        retryFailures(connection, { phase: 'send', path, about: kind }),
        map((answer) => accept(connection, path, sent, answer, onAccepted)),
      );
    });
    return (bytes === 0 ? send : trainingBytes.run(bytes, send)).pipe(
      map((accepted) => ({ accepted })),
      catchError((error: TinkerError) => of({ error, refused: provesRefusal(error, uncertain) })),
    );
  }

  /** @throws the failure of the requests, after noting what it means for the numbers. */
  #settle(requests: readonly NumberedRequest[], outcomes: readonly Outcome[]): Accepted[] {
    this.#unsettled = undefined;
    const accepted = outcomes.flatMap((outcome) => ('accepted' in outcome ? [outcome.accepted] : []));
    const failures = outcomes.flatMap((outcome) => ('error' in outcome ? [outcome] : []));
    // A server that works by arrival does not mind a gap.
    if (failures.length === 0 || this.#session.wireFormat.byArrival) this.#nextSeqId += requests.length;
    else if (accepted.length > 0 || failures.some(({ refused }) => !refused)) {
      const has = new Set(accepted.map(({ seqId }) => seqId));
      this.#timesUnsettled++;
      this.#unsettled = {
        requests,
        // Now, since the caller may change the data once the call has failed.
        contents: requests.map(({ content }) => content()),
        missingSeqId: requests.find(({ seqId }) => !has.has(seqId))!.seqId,
        cause: failures[0]!.error,
      };
    }
    if (failures.length > 0) throw failures[0]!.error;
    return accepted;
  }

  /** The unsettled requests, if a call repeats them. @throws MissingRequestError for any other call. */
  #repeated(requests: readonly NumberedRequest[], madeAfter: number, unsettled: Unsettled): readonly NumberedRequest[] {
    const { contents, missingSeqId, cause } = unsettled;
    const isRepetition =
      madeAfter === this.#timesUnsettled &&
      requests.length === contents.length &&
      requests.every((one, at) => isEqual(one.content(), contents[at]!));
    if (isRepetition) return unsettled.requests;
    const { path } = unsettled.requests[0]!;
    throw new MissingRequestError(
      `the service may not have request ${missingSeqId} (${path}) of model ${this.modelId}, and would wait for it forever: make that call again as it was, or resume from the last save with createTrainingClientFromStateWithOptimizer. It failed with: ${cause.message}`,
      { cause },
    );
  }
}

const isAccepted = (outcome: Outcome): boolean => 'accepted' in outcome;

const isEqual = (one: string | Uint8Array, other: string | Uint8Array): boolean =>
  typeof one === 'string' || typeof other === 'string' ? one === other : Buffer.compare(one, other) === 0;
