import { Subscriber } from 'rxjs';
import type { Gate } from '../gate.js';
import { swapGate } from './gateContext.js';

/** What an operator does with what its listeners hear. One object serves all inners of a subscription. */
export interface ListenerCallbacks<T, S> {
  next(value: T, state: S): void;
  /** Default: errors go downstream as they are. */
  error?(error: unknown, state: S): void;
  complete(state: S): void;
}

/**
 * Listens on behalf of an operator written by hand.
 *
 * It is chained to the destination before it is subscribed, so a synchronous source stops as soon as the destination
 * does; a throw in a callback becomes the destination's error; and every callback runs under the gate of what lies
 * downstream, so that whatever it subscribes to or emits into finds that gate and not the operator's own.
 */
export class Listener<T, S = undefined> extends Subscriber<T> {
  constructor(
    private readonly downstream: Subscriber<unknown>,
    private readonly gate: Gate | undefined,
    private readonly callbacks: ListenerCallbacks<T, S>,
    private readonly state: S,
  ) {
    super(downstream);
  }

  protected override _next(value: T): void {
    const previous = swapGate(this.gate);
    try {
      this.callbacks.next(value, this.state);
    } catch (error) {
      this.downstream.error(error);
    } finally {
      swapGate(previous);
    }
  }

  protected override _error(error: unknown): void {
    const previous = swapGate(this.gate);
    try {
      this.unsubscribe();
      if (this.callbacks.error === undefined) this.downstream.error(error);
      else this.callbacks.error(error, this.state);
    } catch (thrown) {
      this.downstream.error(thrown);
    } finally {
      swapGate(previous);
    }
  }

  protected override _complete(): void {
    const previous = swapGate(this.gate);
    try {
      // What the inner has to clean up is done before the operator moves on, as in RxJS.
      this.unsubscribe();
      this.callbacks.complete(this.state);
    } catch (error) {
      this.downstream.error(error);
    } finally {
      swapGate(previous);
    }
  }
}
