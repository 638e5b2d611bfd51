import type { ForwardBackwardOutput, QueueState, RequestErrorCategory, SampleResponse } from '../../wire/index.js';
import { Changes } from './changes.js';

/** What finished work answers, before it is written as JSON or protobuf. */
export type FutureResult =
  | { readonly type: 'json'; readonly value: Readonly<Record<string, unknown>> }
  | { readonly type: 'forward_backward'; readonly value: ForwardBackwardOutput }
  | { readonly type: 'sample'; readonly value: SampleResponse };

export interface FutureFailure {
  readonly error: string;
  readonly category: RequestErrorCategory;
}

export type FutureState =
  | { readonly type: 'pending' }
  | { readonly type: 'finished'; readonly result: FutureResult }
  | { readonly type: 'failed'; readonly failure: FutureFailure }
  /** Settled long ago; what it gave is no longer kept. */
  | { readonly type: 'gone' };

export interface FutureOwner {
  /** As the client's `X-Tinker-Request-Type` names it: CreateModel, ForwardBackward, Sample, … */
  readonly requestType: string;
  readonly sessionId?: string | undefined;
  readonly modelId?: string | undefined;
  readonly sampleSequenceIds?: readonly string[] | undefined;
}

/** The promise the service gives for work it has accepted. Settles once; later calls change nothing. */
export class LocalFuture {
  #state: FutureState = { type: 'pending' };
  readonly changes = new Changes();
  /** Why the work has not started; sent with polls. */
  waitingFor: string | undefined;
  /** Held back by a quota, whatever the queue as a whole does. */
  throttled = false;
  /** The queue state that the last poll was told. */
  reportedState: QueueState = 'active';
  settledAt: number | undefined;

  constructor(
    readonly requestId: string,
    readonly owner: FutureOwner,
    readonly createdAt: number,
    private readonly onSettled: (future: LocalFuture) => void,
  ) {}

  get state(): FutureState {
    return this.#state;
  }

  get pending(): boolean {
    return this.#state.type === 'pending';
  }

  resolve(result: FutureResult): void {
    this.#settle({ type: 'finished', result });
  }

  reject(failure: FutureFailure): void {
    this.#settle({ type: 'failed', failure });
  }

  /** Lets go of the result. */
  release(): void {
    if (!this.pending) this.#state = { type: 'gone' };
  }

  #settle(state: FutureState): void {
    if (!this.pending) return;
    this.#state = state;
    this.onSettled(this);
    this.changes.notify();
  }
}
