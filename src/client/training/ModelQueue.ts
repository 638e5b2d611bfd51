/*
 * The path of a training call:
 *
 *  1. TrainingClient.forwardBackward   checks the data (passRequests) and starts a future: session/Lifecycle keeps it
 *  2. ModelQueue.pass, .operation      takes the model's next turn at once (concatMap); sends happen in that turn
 *  3. passRequests                     cuts the data into chunks and encodes them; an operation is one JSON request
 *  4. NumberedSends                    numbers the requests, and decides what a failure means for the numbers
 *  5. connection/SharedBudget          waits until the bytes in flight leave room
 *  6. connection/retryFailures         sends until the service accepts: the same bytes under the same key
 *  7. WireFormat                       protobuf, or JSON where the service takes only that
 *  8. results/awaitResult: accept      reads the promise; the turn ends here, and the next call goes out
 *  9. results/awaitResult              polls until the result has arrived
 * 10. combineOutputs                   makes one result of all chunks
 */
import {
  AsyncSubject,
  EMPTY,
  Observable,
  Subject,
  catchError,
  concat,
  concatAll,
  concatMap,
  defer,
  forkJoin,
  ignoreElements,
  map,
  tap,
} from 'rxjs';
import { withGate } from '../../operators/pressure/gate.js';
import { evaluateLoss } from '../../losses/evaluateLoss.js';
import type { TracedLoss } from '../../losses/TracedLoss.js';
import { countTokens } from '../../wire/countTokens.js';
import type { PreparedDatum } from '../../wire/datum.js';
import { decodeForwardBackwardOutput } from '../../wire/proto/forwardBackwardOutput.js';
import type { Json } from '../../wire/record.js';
import { ForwardBackwardOutputJson, type ForwardBackwardOutput } from '../../wire/training.js';
import { awaitResult } from '../results/awaitResult.js';
import type { Accepted, Work } from '../results/work.js';
import type { ResultFormat } from '../results/work.js';
import type { OpenSession } from '../session/Session.js';
import type { RequestType } from '../events.js';
import type { OnAccepted } from '../TinkerFuture.js';
import { combineOutputs } from '../../wire/combineOutputs.js';
import {
  backwardData,
  forwardData,
  runCustomLoss,
  tracedData,
  withCustomMetrics,
  type CustomLossFn,
} from './customLoss.js';
import { NumberedSends, type NumberedRequest } from './NumberedSends.js';
import { passRequests, type Pass } from './passRequests.js';

/** Work that runs in its model's order. */
export interface ModelWork<A, B = A> extends Omit<Work<A>, 'json' | 'target'> {
  /** Called once, when the call is made: later changes to the caller's objects are not sent, and a mistake takes no turn. */
  readonly json: () => Json;
  /** Further fields that are known only when it is sent. */
  readonly jsonWhenSent?: () => Json;
  /** What the caller gets for the result. Default: the result itself. */
  readonly toResult?: (result: A, seqId: number) => B;
}

/** The result of a pass, to be awaited outside of its turn. */
type Awaiting = Observable<ForwardBackwardOutput>;

/** Sends requests in a turn, and emits once the service has accepted them. A send that has begun always finishes. */
type Send = (
  requestType: RequestType,
  make: (firstSeqId: number) => readonly NumberedRequest[],
) => Observable<readonly Accepted[]>;

const FORWARD_BACKWARD: ResultFormat<ForwardBackwardOutput> = {
  json: ForwardBackwardOutputJson,
  protobuf: decodeForwardBackwardOutput,
};

/**
 * The calls of one model. Each takes its turn when it is made. Turns are for sending, one after the other; results are awaited outside.
 *
 * ```
 * calls     abc------------------►
 * sends     [a ][b][c  ]---------►    concatMap: in order, retries included
 * results   --------A----B-----C-►    polled for side by side
 * ```
 */
export class ModelQueue {
  readonly #session: OpenSession;
  readonly #turns = new Subject<Observable<never>>();
  readonly #sends: NumberedSends;

  constructor(
    session: OpenSession,
    readonly modelId: string,
  ) {
    this.#session = session;
    this.#sends = new NumberedSends(session, modelId);
    // The first call may come from inside a pipeline, whose gate has nothing to do with this.
    withGate(undefined, () => this.#turns.pipe(concatMap((turn) => turn)).subscribe());
  }

  /**
   * Runs the work in the model's order, in a turn that is taken now and over when the work is. When the caller leaves, a send that has
   * begun finishes all the same, before the next turn: the service would wait forever for a number that is never sent.
   */
  #inTurn<A>(onAccepted: OnAccepted, work: (send: Send) => Observable<A>): Observable<A> {
    const submit = this.#sends.forCallMadeNow();
    return new Observable((caller) => {
      let sending: Observable<unknown> = EMPTY;
      const send: Send = (requestType, make) => {
        const sent = new AsyncSubject<readonly Accepted[]>();
        sending = sent;
        submit(requestType, make, onAccepted)
          .pipe(tap((accepted) => caller.closed && this.#abandoned(accepted)))
          .subscribe(sent);
        return sent;
      };
      const turn = new Observable<never>((over) => {
        // A call that was cancelled while it waited takes no number.
        if (caller.closed) return over.complete();
        caller.add(() => over.complete());
        defer(() => work(send)).subscribe(caller);
      });
      const begun = defer(() => sending).pipe(
        ignoreElements(),
        catchError(() => EMPTY),
      );
      this.#turns.next(concat(turn, begun));
    });
  }

  /** One request, one turn, one result. @throws ValidationError without taking the turn. */
  operation<A, B = A>(work: ModelWork<A, B>, onAccepted: OnAccepted): Observable<B> {
    const { requestType, path, json, jsonWhenSent, format, toResult } = work;
    const { connection } = this.#session;
    const body = json();
    const make = (seqId: number): NumberedRequest[] => {
      const call = { path, lane: 'training', json: { ...body, ...jsonWhenSent?.(), seq_id: seqId } } as const;
      const key = connection.uuid();
      const content = (): string => path + JSON.stringify(body);
      return [{ seqId, bytes: 0, path, content, attempt: connection.attempt(call, key) }];
    };
    return this.#inTurn(onAccepted, (send) => send(requestType, make)).pipe(
      concatMap(([accepted]) =>
        awaitResult(this.#session, accepted!, format).pipe(
          map((result) => (toResult === undefined ? (result as unknown as B) : toResult(result, accepted!.seqId!))),
        ),
      ),
    );
  }

  pass(pass: Pass, onAccepted: OnAccepted): Observable<ForwardBackwardOutput> {
    return this.#inTurn(onAccepted, (send) => this.#send(send, pass)).pipe(concatMap(this.#resultsOf(pass)));
  }

  /** A forward pass, the caller's loss, and a backward pass with its gradients, in one turn. */
  customPass(
    data: readonly PreparedDatum[],
    loss: CustomLossFn,
    onAccepted: OnAccepted,
  ): Observable<ForwardBackwardOutput> {
    const forward = forwardPass(data);
    return this.#inTurn(onAccepted, (send) => this.#twoPasses(send, forward, data, loss)).pipe(concatAll());
  }

  /** A traced loss in one turn: one pass where the service runs it, else as {@link customPass}. */
  tracedPass(
    forwardOnly: boolean,
    data: readonly PreparedDatum[],
    loss: TracedLoss,
    onAccepted: OnAccepted,
  ): Observable<ForwardBackwardOutput> {
    const here: CustomLossFn = (given, logprobs) => evaluateLoss(loss, given, logprobs);
    const forward = forwardPass(data);
    const runHere = (send: Send): Observable<Awaiting> => {
      if (!forwardOnly) return this.#twoPasses(send, forward, data, here);
      const withLoss = map((output: ForwardBackwardOutput) =>
        withCustomMetrics(output, runCustomLoss(here, data, output)),
      );
      return this.#send(send, forward).pipe(map((accepted) => this.#resultsOf(forward)(accepted).pipe(withLoss)));
    };
    const { connection, losses } = this.#session;
    const runThere = (send: Send): Observable<Awaiting> =>
      losses.handleOf(this.#session, loss, data, onAccepted).pipe(
        concatMap((handle) => {
          if (handle === undefined) return runHere(send);
          const lossFnConfig = { loss_id: handle.lossId };
          const pass: Pass = { forwardOnly, data: tracedData(loss, data), lossFn: 'custom', lossFnConfig };
          return this.#send(send, pass).pipe(map(this.#resultsOf(pass)));
        }),
      );
    const isRunThere = loss.unit === 'datum' && connection.config.customLossServerSide;
    return this.#inTurn(onAccepted, isRunThere ? runThere : runHere).pipe(concatAll());
  }

  #twoPasses(send: Send, forward: Pass, data: readonly PreparedDatum[], loss: CustomLossFn): Observable<Awaiting> {
    return this.#send(send, forward).pipe(
      concatMap(this.#resultsOf(forward)),
      concatMap((output) => {
        const result = runCustomLoss(loss, data, output);
        const backward: Pass = { ...forward, forwardOnly: false, data: backwardData(data, output, result) };
        const withLoss = map((final: ForwardBackwardOutput) => withCustomMetrics(final, result));
        return this.#send(send, backward).pipe(map((accepted) => this.#resultsOf(backward)(accepted).pipe(withLoss)));
      }),
    );
  }

  #send(send: Send, pass: Pass): Observable<readonly Accepted[]> {
    return send(pass.forwardOnly ? 'Forward' : 'ForwardBackward', (seqId) =>
      passRequests(this.#session, this.modelId, pass, seqId),
    );
  }

  #resultsOf(pass: Pass): (accepted: readonly Accepted[]) => Observable<ForwardBackwardOutput> {
    return (accepted) =>
      forkJoin(accepted.map((one) => awaitResult(this.#session, one, FORWARD_BACKWARD))).pipe(
        map((outputs) => {
          if (this.#session.connection.events.all.observed) this.#tellTokens(pass);
          return outputs.length === 1 ? outputs[0]! : combineOutputs(outputs);
        }),
      );
  }

  #tellTokens({ forwardOnly, data }: Pass): void {
    this.#session.connection.events.emit({
      type: 'tokens-used',
      requestType: forwardOnly ? 'Forward' : 'ForwardBackward',
      target: this.modelId,
      prompt: 0,
      cached: 0,
      sampled: 0,
      trained: data.reduce((sum, { modelInput }) => sum + countTokens(modelInput), 0),
    });
  }

  /** Work still runs that was accepted after its caller had gone. */
  #abandoned(accepted: readonly Accepted[]): void {
    const { events } = this.#session.connection;
    for (const { requestType, target, requestId } of accepted)
      events.emit({ type: 'request-abandoned', requestType, requestId, target, cancelled: false });
  }
}

const forwardPass = (data: readonly PreparedDatum[]): Pass => ({
  lossFn: 'cross_entropy',
  forwardOnly: true,
  data: forwardData(data),
});
