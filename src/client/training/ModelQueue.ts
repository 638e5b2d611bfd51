/*
 * The path of a training call:
 *
 *  1. TrainingClient.forwardBackward   checks the data (trainingInput) and starts a future: session/Lifecycle keeps it
 *  2. ModelTurns.pass, .operation      takes the model's next turn at once (Turnstile); the rest happens in that turn
 *  3. passRequests                     cuts the data into chunks and encodes them; an operation is one JSON request
 *  4. NumberedSends                    numbers the requests, and decides what a failure means for the numbers
 *  5. connection/Budget                waits until the bytes in flight leave room
 *  6. connection/resend                sends until the service accepts: the same bytes under the same key
 *  7. WireFormat                       protobuf, or JSON where the service takes only that
 *  8. results/awaitResult              reads the promise; the turn ends here, and the next call goes out
 *  9. results/retrieve                 polls until the result has arrived
 * 10. combineOutputs                   makes one result of all chunks
 */
import { concatMap, forkJoin, map, tap, type Observable } from 'rxjs';
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
import type { FutureProgress } from '../TinkerFuture.js';
import { combineOutputs } from './combineOutputs.js';
import {
  backwardData,
  forwardData,
  runCustomLoss,
  tracedData,
  withCustomMetrics,
  type CustomLossFn,
} from './customLoss.js';
import { NumberedSends, type NumberedRequest, type Submit } from './NumberedSends.js';
import { passRequests, type Pass } from './passRequests.js';
import { Turnstile, type TurnInHand } from './Turnstile.js';

/** Work that runs in its model's order. */
export interface ModelWork<A> extends Omit<Work<A>, 'json' | 'target'> {
  /** Called once, when the call is made: later changes to the caller's objects are not sent, and a mistake takes no turn. */
  readonly json: () => Json;
  /** Further fields that are known only when it is sent. */
  readonly jsonWhenSent?: () => Json;
  readonly onResult?: (result: A, seqId: number) => void;
}

interface Turn extends TurnInHand {
  readonly submit: Submit;
  readonly progress: FutureProgress;
}

const FORWARD_BACKWARD: ResultFormat<ForwardBackwardOutput> = {
  json: ForwardBackwardOutputJson,
  protobuf: decodeForwardBackwardOutput,
};

/**
 * The turns of one model. A call takes its turn when it is made, is numbered and sent when the turn comes, and its result
 * is awaited outside of the turn.
 */
export class ModelTurns {
  readonly #session: OpenSession;
  readonly #turns = new Turnstile();
  readonly #sends: NumberedSends;

  constructor(
    session: OpenSession,
    readonly modelId: string,
  ) {
    this.#session = session;
    this.#sends = new NumberedSends(session, modelId);
  }

  /** One request, one turn, one result. @throws ValidationError without taking the turn. */
  operation<A>(work: ModelWork<A>, progress: FutureProgress): Observable<A> {
    const { requestType, path, json, jsonWhenSent = () => ({}), format, onResult } = work;
    const { connection } = this.#session;
    const body = json();
    const make = (seqId: number): NumberedRequest[] => {
      const call = { path, lane: 'training', json: { ...body, ...jsonWhenSent(), seq_id: seqId } } as const;
      const key = connection.uuid();
      const content = (): string => path + JSON.stringify(body);
      return [{ seqId, bytes: 0, path, content, attempt: connection.attempt(call, key) }];
    };
    return this.#take(progress, ({ submit, commit, release }) =>
      commit(submit(requestType, make, progress), this.#abandoned).pipe(
        tap(release),
        concatMap(([accepted]) =>
          awaitResult(this.#session, accepted!, format).pipe(tap((result) => onResult?.(result, accepted!.seqId!))),
        ),
      ),
    );
  }

  pass(pass: Pass, progress: FutureProgress): Observable<ForwardBackwardOutput> {
    return this.#take(progress, (turn) => this.#onePass(turn, pass));
  }

  /** A forward pass, the caller's loss, and a backward pass with its gradients, in one turn. */
  customPass(
    data: readonly PreparedDatum[],
    loss: CustomLossFn,
    progress: FutureProgress,
  ): Observable<ForwardBackwardOutput> {
    const forward = forwardPass(data);
    return this.#take(progress, (turn) => this.#twoPasses(turn, forward, data, loss));
  }

  /** A traced loss in one turn: one pass where the service runs it, else as {@link customPass}. */
  tracedPass(
    forwardOnly: boolean,
    data: readonly PreparedDatum[],
    loss: TracedLoss,
    progress: FutureProgress,
  ): Observable<ForwardBackwardOutput> {
    const here: CustomLossFn = (given, logprobs) => evaluateLoss(loss, given, logprobs);
    const forward = forwardPass(data);
    const runHere = (turn: Turn): Observable<ForwardBackwardOutput> =>
      forwardOnly
        ? this.#onePass(turn, forward).pipe(
            map((output) => withCustomMetrics(output, runCustomLoss(here, data, output))),
          )
        : this.#twoPasses(turn, forward, data, here);
    const { connection, losses } = this.#session;
    if (loss.unit !== 'datum' || !connection.config.customLossServerSide) return this.#take(progress, runHere);
    return this.#take(progress, (turn) =>
      losses.handleOf(this.#session, loss, data, progress).pipe(
        concatMap((handle) => {
          if (handle === undefined) return runHere(turn);
          const lossFnConfig = { loss_id: handle.lossId };
          return this.#onePass(turn, { forwardOnly, data: tracedData(loss, data), lossFn: 'custom', lossFnConfig });
        }),
      ),
    );
  }

  #take<A>(progress: FutureProgress, work: (turn: Turn) => Observable<A>): Observable<A> {
    const submit = this.#sends.forCallMadeNow();
    return this.#turns.take(({ release, commit }) => work({ release, commit, submit, progress }));
  }

  #onePass(turn: Turn, pass: Pass): Observable<ForwardBackwardOutput> {
    return this.#sendPass(turn, pass).pipe(tap(turn.release), concatMap(this.#resultsOf(pass)));
  }

  #twoPasses(
    turn: Turn,
    forward: Pass,
    data: readonly PreparedDatum[],
    loss: CustomLossFn,
  ): Observable<ForwardBackwardOutput> {
    return this.#sendPass(turn, forward).pipe(
      concatMap(this.#resultsOf(forward)),
      concatMap((output) => {
        const result = runCustomLoss(loss, data, output);
        const backward: Pass = { ...forward, forwardOnly: false, data: backwardData(data, output, result) };
        return this.#onePass(turn, backward).pipe(map((final) => withCustomMetrics(final, result)));
      }),
    );
  }

  #sendPass({ submit, commit, progress }: Turn, pass: Pass): Observable<readonly Accepted[]> {
    const make = (seqId: number): NumberedRequest[] => passRequests(this.#session, this.modelId, pass, seqId);
    return commit(submit(pass.forwardOnly ? 'Forward' : 'ForwardBackward', make, progress), this.#abandoned);
  }

  #resultsOf(pass: Pass): (accepted: readonly Accepted[]) => Observable<ForwardBackwardOutput> {
    return (accepted) =>
      forkJoin(accepted.map((one) => awaitResult(this.#session, one, FORWARD_BACKWARD))).pipe(
        tap(() => this.#tellTokens(pass)),
        map(combineOutputs),
      );
  }

  #tellTokens({ forwardOnly, data }: Pass): void {
    const { events } = this.#session.connection;
    if (!events.observed) return;
    events.emit({
      type: 'tokens-used',
      requestType: forwardOnly ? 'Forward' : 'ForwardBackward',
      target: this.modelId,
      prompt: 0,
      cached: 0,
      sampled: 0,
      trained: data.reduce((sum, { modelInput }) => sum + countTokens(modelInput), 0),
    });
  }

  /** Emits that work still runs which was accepted after its caller had gone. */
  readonly #abandoned = (accepted: readonly Accepted[]): void => {
    for (const { requestType, target, requestId } of accepted) {
      const { events } = this.#session.connection;
      events.emit({ type: 'request-abandoned', requestType, requestId, target, cancelled: false });
    }
  };
}

const forwardPass = (data: readonly PreparedDatum[]): Pass => ({
  lossFn: 'cross_entropy',
  forwardOnly: true,
  data: forwardData(data),
});
