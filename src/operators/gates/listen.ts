import { isObservable, type Observable, Subscriber, type Subscription, type Unsubscribable } from 'rxjs';
import { currentGate, type Gate, swapGate, withGate } from '../gate.js';

/**
 * What lies downstream of an operator: its subscriber, its gate as found on subscribe, and the waiting for that gate.
 * Whatever waits is called once, under the gate, and never after the subscriber is closed.
 */
export class Downstream<R = never> {
  readonly gate: Gate | undefined = currentGate();
  readonly listeners: Listeners;
  #waiting = false;
  #stop: (() => void) | undefined;

  constructor(
    readonly subscriber: Subscriber<R>,
    private readonly resume: () => void,
  ) {
    this.listeners = new Listeners(subscriber);
  }

  get isOpen(): boolean {
    return this.gate === undefined || this.gate.isOpen;
  }

  /** Where the gate is closed, has `resume` called when it next opens; it is asked for once at a time. */
  waitIfClosed(): void {
    if (this.#waiting || this.isOpen || this.subscriber.closed) return;
    this.#waiting = true;
    if (this.#stop === undefined) this.subscriber.add(() => this.#stop!());
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

/**
 * What an operator listens to: it ends when the operator's subscriber does.
 *
 * RxJS keeps this in a list that it searches for each one that ends, which with two thousand in flight takes as long as the rest.
 */
export class Listeners {
  readonly #all = new Set<Unsubscribable>();

  constructor(subscriber: Pick<Subscriber<never>, 'add'>) {
    subscriber.add(() => {
      for (const listener of this.#all) listener.unsubscribe();
    });
  }

  add(listener: Unsubscribable): void {
    this.#all.add(listener);
  }

  delete(listener: Unsubscribable): void {
    this.#all.delete(listener);
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

/**
 * Whether what is made of a value may be fed by the source the value came from, as the parts that `window` and `groupBy`
 * give are: then it needs the source to go on before it can end. A future is not: it has its one result by itself.
 */
export function mayBeFed(value: unknown): boolean {
  return isObservable(value) && !('then' in value);
}
