import { isObservable, type Observable, Subscriber, type Subscription, type Unsubscribable } from 'rxjs';
import { currentGate, type Gate, swapGate, withGate } from '../gate.js';

/**
 * The downstream side of an operator: its subscriber, its gate as found on subscribe, and the waiting for that gate.
 * Whatever waits is called once, under the gate, and never after the subscriber is closed.
 */
export class Downstream<R = never> {
  readonly gate: Gate | undefined = currentGate();
  /**
   * What the operator listens to: it ends when the subscriber does. RxJS keeps this in a list that it searches for each one that ends,
   * which with two thousand in flight takes as long as the rest.
   */
  readonly listeners = new Set<Unsubscribable>();
  #waiting = false;
  #stop: (() => void) | undefined;

  constructor(
    readonly subscriber: Subscriber<R>,
    /** Called when the gate opens again. */
    private readonly resume = () => {},
  ) {
    subscriber.add(() => {
      for (const listener of this.listeners) listener.unsubscribe();
      this.#stop?.();
    });
  }

  get isOpen(): boolean {
    return this.gate === undefined || this.gate.isOpen;
  }

  /** If the gate is closed, has `resume` called when it next opens; it is asked for once at a time. */
  waitIfClosed(): void {
    if (this.#waiting || this.isOpen || this.subscriber.closed) return;
    this.#waiting = true;
    this.#stop = this.gate!.onceOpen(() => {
      this.#waiting = false;
      try {
        withGate(this.gate, this.resume);
      } catch (error) {
        this.subscriber.error(error);
      }
    });
  }
}

/** What an operator does with what it hears. One object serves all inners of a subscription. */
export interface Heard<T, S> {
  next(value: T, state: S): void;
  /** Default: errors go downstream as they are. */
  error?(error: unknown, state: S): void;
  complete(state: S): void;
  /** Told, before anything else, under which gate it was heard: that of the source that was emitting, where it has one. */
  under?(gate: Gate, state: S): void;
}

/**
 * Subscribes on behalf of an operator written by hand, unless its subscriber is closed already.
 *
 * The listener ends with the subscriber, from before it is subscribed, so a synchronous source stops as soon as the
 * subscriber does; a throw in a callback becomes the subscriber's error; and every callback runs under the downstream
 * gate, so that whatever it subscribes to or emits into finds that gate and not the operator's own.
 */
export function listen<T, S>(source: Observable<T>, to: Downstream, heard: Heard<T, S>, state: S): Subscription {
  const listener = new Listener(to, heard, state);
  if (to.subscriber.closed) listener.unsubscribe();
  else to.listeners.add(listener);
  return listener.closed ? listener : source.subscribe(listener);
}

// There is one for every inner, and every value passes it. A plain observer in a subscriber that RxJS makes would need
// nothing that RxJS calls internal, and costs two to three times what `concatMap` does (bench/operators.mjs).
class Listener<T, S> extends Subscriber<T> {
  constructor(
    private readonly to: Downstream,
    private readonly heard: Heard<T, S>,
    private readonly state: S,
  ) {
    super();
  }

  override unsubscribe(): void {
    if (this.closed) return;
    super.unsubscribe();
    this.to.listeners.delete(this);
  }

  protected override _next(value: T): void {
    const { to, heard, state } = this;
    const previous = swapGate(to.gate);
    try {
      if (previous !== undefined) heard.under?.(previous, state);
      heard.next(value, state);
    } catch (error) {
      to.subscriber.error(error);
    } finally {
      swapGate(previous);
    }
  }

  protected override _error(error: unknown): void {
    const { to, heard, state } = this;
    const previous = swapGate(to.gate);
    try {
      // What the source has to clean up is done before the operator moves on, as in RxJS.
      this.unsubscribe();
      if (previous !== undefined) heard.under?.(previous, state);
      if (heard.error === undefined) to.subscriber.error(error);
      else heard.error(error, state);
    } catch (thrown) {
      to.subscriber.error(thrown);
    } finally {
      swapGate(previous);
    }
  }

  protected override _complete(): void {
    const { to, heard, state } = this;
    const previous = swapGate(to.gate);
    try {
      this.unsubscribe();
      if (previous !== undefined) heard.under?.(previous, state);
      heard.complete(state);
    } catch (error) {
      to.subscriber.error(error);
    } finally {
      swapGate(previous);
    }
  }
}

/**
 * Whether what is made of a value may be fed by the source the value came from, as the parts that `window` and `groupBy`
 * give are: then it needs the source to continue before it can end. A future is not: its one result does not depend on the source.
 */
export function mayBeFed(value: unknown): boolean {
  return isObservable(value) && !('then' in value);
}
