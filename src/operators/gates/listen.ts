import { type Observable, Subscriber, type Subscription } from 'rxjs';
import type { Gate } from '../gate.js';
import type { Downstream } from './Downstream.js';
import type { Listeners } from './Listeners.js';
import { swapGate } from './gateContext.js';

/** What an operator does with what it hears. One object serves all inners of a subscription. */
export interface Heard<T, S> {
  next(value: T, state: S): void;
  /** Default: errors go downstream as they are. */
  error?(error: unknown, state: S): void;
  complete(state: S): void;
  /** Told, before anything else, under which gate it was heard: that of the source that was emitting, where it has one. */
  under?(gate: Gate, state: S): void;
}

type To = Pick<Downstream, 'gate' | 'listeners'> & { readonly subscriber: Subscriber<never> };

/**
 * Subscribes on behalf of an operator written by hand, unless its subscriber is closed already.
 *
 * The listener ends with the subscriber, from before it is subscribed, so a synchronous source stops as soon as the
 * subscriber does; a throw in a callback becomes the subscriber's error; and every callback runs under the gate of what
 * lies downstream, so that whatever it subscribes to or emits into finds that gate and not the operator's own.
 */
export function listen<T, S>(source: Observable<T>, to: To, heard: Heard<T, S>, state: S): Subscription {
  const listener = new Listener(to, heard, state);
  if (to.subscriber.closed) listener.unsubscribe();
  else to.listeners.add(listener);
  return listener.closed ? listener : source.subscribe(listener);
}

// There is one for every inner, and every value passes it. A plain observer in a subscriber that RxJS makes would need
// nothing that RxJS calls internal, and costs two to three times what `concatMap` does (bench/operators.mjs).
class Listener<T, S> extends Subscriber<T> {
  private readonly downstream: Subscriber<never>;
  private readonly gate: Gate | undefined;
  private readonly listeners: Listeners;

  constructor(
    { subscriber, gate, listeners }: To,
    private readonly heard: Heard<T, S>,
    private readonly state: S,
  ) {
    super();
    this.downstream = subscriber;
    this.gate = gate;
    this.listeners = listeners;
  }

  override unsubscribe(): void {
    if (this.closed) return;
    super.unsubscribe();
    this.listeners.delete(this);
  }

  protected override _next(value: T): void {
    const { heard, state } = this;
    const previous = swapGate(this.gate);
    try {
      if (previous !== undefined) heard.under?.(previous, state);
      heard.next(value, state);
    } catch (error) {
      this.downstream.error(error);
    } finally {
      swapGate(previous);
    }
  }

  protected override _error(error: unknown): void {
    const { heard, state } = this;
    const previous = swapGate(this.gate);
    try {
      // What the source has to clean up is done before the operator moves on, as in RxJS.
      this.unsubscribe();
      if (previous !== undefined) heard.under?.(previous, state);
      if (heard.error === undefined) this.downstream.error(error);
      else heard.error(error, state);
    } catch (thrown) {
      this.downstream.error(thrown);
    } finally {
      swapGate(previous);
    }
  }

  protected override _complete(): void {
    const { heard, state } = this;
    const previous = swapGate(this.gate);
    try {
      this.unsubscribe();
      if (previous !== undefined) heard.under?.(previous, state);
      heard.complete(state);
    } catch (error) {
      this.downstream.error(error);
    } finally {
      swapGate(previous);
    }
  }
}
