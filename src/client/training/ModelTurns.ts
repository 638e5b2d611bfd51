import { concatMap, map, takeUntil, tap, type Observable } from 'rxjs';
import type { PreparedDatum } from '../../wire/datum.js';
import type { Json } from '../../wire/record.js';
import type { ForwardBackwardOutput } from '../../wire/training.js';
import { evaluateLoss } from '../../losses/evaluateLoss.js';
import type { TracedLoss } from '../../losses/TracedLoss.js';
import {
  backwardData,
  forwardData,
  runCustomLoss,
  tracedData,
  withCustomMetrics,
  type CustomLossFn,
} from './customLoss.js';
import type { RequestType } from '../events.js';
import { accept, awaitResult, type Accepted, type Submission } from '../results/awaitResult.js';
import { PassSender, type Pass } from './PassSender.js';
import type { ResultFormat } from '../results/retrieve.js';
import type { OpenSession } from '../session/Session.js';
import type { FutureProgress } from '../TinkerFuture.js';
import { Turnstile, type TurnInHand } from './Turnstile.js';

/** One request, one turn, one result. */
export interface Operation<A> {
  readonly requestType: RequestType;
  readonly path: string;
  /** Made at the call, of what the caller's objects hold then; a mistake in it takes no turn. */
  readonly json: () => Json;
  /** More of it, known only when it is sent. Its own number is one such thing. */
  readonly jsonWhenSent?: () => Json;
  readonly format: ResultFormat<A>;
  readonly onResult?: (result: A, seqId: number) => void;
}

/**
 * The turns of one model. Whatever is asked of it takes its turn at the call, is numbered and sent when the turn comes,
 * and is waited for outside of it.
 */
export class ModelTurns {
  readonly #session: OpenSession;
  readonly #passes: PassSender;
  readonly #turns = new Turnstile();
  #lastSeqId = 0;

  constructor(
    session: OpenSession,
    readonly modelId: string,
  ) {
    this.#session = session;
    this.#passes = new PassSender(session, modelId, () => ++this.#lastSeqId);
  }

  /** @throws ValidationError without taking the turn. */
  operation<A>(operation: Operation<A>, progress: FutureProgress): Observable<A> {
    const { requestType, path, json, jsonWhenSent = () => ({}), format, onResult } = operation;
    const { connection } = this.#session;
    const body = json();
    return this.#turns.take(({ release, commit }) => {
      const seqId = ++this.#lastSeqId;
      const startedMs = connection.scheduler.now();
      const submission: Submission = { requestType, target: this.modelId, seqId, bytes: 0, startedMs };
      const sent = connection
        .send(
          { path, lane: 'training', json: { ...body, ...jsonWhenSent(), seq_id: seqId } },
          { requestType, target: this.modelId },
        )
        .pipe(
          takeUntil(connection.closing),
          map((answer) => accept(this.#session, submission, answer, progress)),
        );
      return commit(sent, (accepted) => this.#abandoned([accepted])).pipe(
        tap(release),
        concatMap((accepted) => awaitResult(this.#session, accepted, format)),
        tap((result) => onResult?.(result, seqId)),
      );
    });
  }

  pass(pass: Pass, progress: FutureProgress): Observable<ForwardBackwardOutput> {
    return this.#turns.take((turn) => this.#onePass(turn, pass, progress));
  }

  /** A traced loss in one turn: one pass where the service runs it, else as {@link customPass}. */
  tracedPass(
    requestType: Pass['requestType'],
    data: readonly PreparedDatum[],
    loss: TracedLoss,
    progress: FutureProgress,
  ): Observable<ForwardBackwardOutput> {
    const here: CustomLossFn = (given, logprobs) => evaluateLoss(loss, given, logprobs);
    const forward: Pass = { lossFn: 'cross_entropy', requestType: 'Forward', data: forwardData(data) };
    const runHere = (turn: TurnInHand): Observable<ForwardBackwardOutput> =>
      requestType === 'ForwardBackward'
        ? this.#twoPasses(turn, forward, data, here, progress)
        : this.#onePass(turn, forward, progress).pipe(
            map((output) => withCustomMetrics(output, runCustomLoss(here, data, output))),
          );
    const { connection, losses } = this.#session;
    if (loss.unit !== 'datum' || !connection.config.customLossServerSide) return this.#turns.take(runHere);
    return this.#turns.take((turn) =>
      losses.handleOf(this.#session, loss, data, progress).pipe(
        concatMap((handle) => {
          if (handle === undefined) return runHere(turn);
          const lossFnConfig = { loss_id: handle.lossId };
          const pass: Pass = { requestType, data: tracedData(loss, data), lossFn: 'custom', lossFnConfig };
          return this.#onePass(turn, pass, progress);
        }),
      ),
    );
  }

  /** A forward pass, the caller's loss, and a backward pass with its gradients, in one turn. */
  customPass(
    data: readonly PreparedDatum[],
    loss: CustomLossFn,
    progress: FutureProgress,
  ): Observable<ForwardBackwardOutput> {
    const forward: Pass = { lossFn: 'cross_entropy', requestType: 'Forward', data: forwardData(data) };
    return this.#turns.take((turn) => this.#twoPasses(turn, forward, data, loss, progress));
  }

  #onePass({ release, commit }: TurnInHand, pass: Pass, progress: FutureProgress): Observable<ForwardBackwardOutput> {
    return commit(this.#passes.submit(pass, progress), this.#abandoned).pipe(
      tap(release),
      concatMap((accepted) => this.#passes.results(accepted)),
    );
  }

  #twoPasses(
    turn: TurnInHand,
    forward: Pass,
    data: readonly PreparedDatum[],
    loss: CustomLossFn,
    progress: FutureProgress,
  ): Observable<ForwardBackwardOutput> {
    return turn.commit(this.#passes.submit(forward, progress), this.#abandoned).pipe(
      concatMap((accepted) => this.#passes.results(accepted)),
      concatMap((output) => {
        const result = runCustomLoss(loss, data, output);
        const backward: Pass = {
          ...forward,
          requestType: 'ForwardBackward',
          data: backwardData(data, output, result),
        };
        return this.#onePass(turn, backward, progress).pipe(map((final) => withCustomMetrics(final, result)));
      }),
    );
  }

  /** Says of work that was accepted after its caller had gone that it runs on. */
  readonly #abandoned = (accepted: readonly Accepted[]): void => {
    for (const { submission, promise } of accepted) {
      const { requestType, target } = submission;
      const { requestId } = promise;
      const { events } = this.#session.connection;
      events.emit({ type: 'request-abandoned', requestType, requestId, target, cancelled: false });
    }
  };
}
