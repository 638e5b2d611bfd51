import { map, tap, type Observable } from 'rxjs';
import {
  CreateCustomLossRequest,
  CreateCustomLossResponse,
  type CustomLossGraph,
  type CustomLossInput,
} from '../../wire/customLoss.js';
import { ValidationError } from '../../wire/tinkerError.js';
import type { LossHandle } from './customLoss.js';
import { prepare } from '../connection/prepare.js';
import type { OpenSession } from '../session/Session.js';
import { submitWork } from '../results/submitWork.js';
import type { FutureProgress } from '../TinkerFuture.js';

export interface CustomLossDefinition {
  readonly name: string;
  /** `logprobs` first, then the loss inputs it reads. */
  readonly inputs: readonly CustomLossInput[];
  readonly graph: CustomLossGraph;
}

/** The losses that one session has uploaded. */
export class CustomLosses {
  readonly #known = new Set<string>();
  #next = 0;

  /** @throws ValidationError where the service runs no custom losses, or has this one already. */
  upload(
    session: OpenSession,
    { name, inputs, graph }: CustomLossDefinition,
    progress: FutureProgress,
  ): Observable<LossHandle> {
    if (!session.connection.config.customLossServerSide) {
      throw new ValidationError(
        'this service does not run custom losses; pass a function to forwardBackwardCustom instead',
      );
    }
    const key = JSON.stringify([inputs, graph]);
    if (this.#known.has(key))
      throw new ValidationError(`this session has the loss ${name} already: use its handle again`);
    this.#known.add(key);
    const json = prepare(CreateCustomLossRequest, {
      sessionId: session.id,
      customLossSeqId: this.#next++,
      name,
      inputs: [...inputs],
      graph: graph as never,
    });
    const work = {
      requestType: 'CreateCustomLoss',
      path: 'create_custom_loss',
      target: name,
      json,
      format: { json: CreateCustomLossResponse },
    } as const;
    return submitWork(session, work, progress).pipe(
      tap({ error: () => this.#known.delete(key) }),
      map(({ lossId }) => ({ name, inputs, sessionId: session.id, lossId })),
    );
  }
}
