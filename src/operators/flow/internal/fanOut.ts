import { defer, finalize, map, merge, Observable, Subject, type Subscriber, takeUntil } from 'rxjs';
import { checkIntegers } from '../../../support/checks.js';
import {
  currentScope,
  FlowMeter,
  hasScope,
  watched$,
  withoutScope,
  withScope,
} from '../../pressure/shared/FlowMeter.js';
import { WatchedQueue } from '../../pressure/shared/backpressureEvents.js';
import { currentGate, Gate, swapGate, withGate } from '../../pressure/gate.js';

/** Pipelines by name, and what each makes. */
export type Pipelines<T, R> = { readonly [K in keyof R]: (source: Observable<T>) => Observable<R[K]> };

/** A value of one of several pipelines. */
export type Routed<R> = {
  [K in keyof R]: {
    /** The pipeline's name. */
    readonly pipeline: K;
    /** What it emitted. */
    readonly value: R[K];
  };
}[keyof R];

export interface FanOutOptions<T, R> {
  readonly name: string;
  readonly pipelines: Pipelines<T, R>;
  readonly buffer: number;
  /** The name of the pipeline that a value goes to. Default: it goes to all. */
  readonly key?: (value: T, index: number) => keyof R;
}

/** Sends each value of the source to some of the pipelines, and merges what they make. The fullest gates the source. */
export function fanOut<T, R>({ name, pipelines, buffer, key }: FanOutOptions<T, R>) {
  checkIntegers({ buffer }, 1);
  const names = Object.keys(pipelines);
  if (names.length === 0) throw new RangeError(`${name} needs at least one pipeline`);
  return (source: Observable<T>): Observable<Routed<R>> =>
    new Observable((subscriber) => {
      const gate = new Gate();
      // Inside a named operator it is a part of that one.
      const meter = currentScope().owner === undefined ? new FlowMeter(name, gate) : undefined;
      const left = new Subject<void>();
      let index = 0;
      let stopped = false;
      let failure: Failure | undefined;
      // Leaves the source before the gate opens: others may share it.
      const stop = () => {
        stopped = true;
        left.next();
        gate.set(true);
      };
      const update = () => {
        if (stopped) return;
        if (failure !== undefined && all.every((branch) => branch.isDrained))
          all.forEach((branch) => branch.end(failure));
        if (all.every((branch) => branch.isLeft)) {
          stop();
          // One that subscribes again later finds the end.
          all.forEach((branch) => branch.end());
        } else gate.set(all.every(hasRoom));
      };
      const hasRoom = ({ length }: Branch<T>) => length < buffer;
      const branches = new Map(names.map((each) => [each, new Branch<T>(name, buffer, meter, update)]));
      const all = [...branches.values()];
      subscriber.add(() => {
        stop();
        meter?.end();
      });
      const made = names.map((pipeline) => {
        const branch = branches.get(pipeline)!;
        return defer(() => pipelines[pipeline as keyof R](branch.values)).pipe(
          map((value) => ({ pipeline, value }) as Routed<R>),
          finalize(() => branch.leave()),
        );
      });
      merge(...made).subscribe(subscriber);
      const branchOf = (chosen: keyof R): Branch<T> => {
        const branch = branches.get(String(chosen));
        if (branch === undefined)
          throw new RangeError(`${name} has no pipeline '${String(chosen)}' for a value; it has ${names.join(', ')}`);
        return branch;
      };
      const next = (value: T) => {
        const chosen = key === undefined ? undefined : branchOf(key(value, index++));
        if (chosen === undefined) {
          for (const branch of all) branch.push(value);
          for (const branch of all) branch.drain();
        } else {
          chosen.push(value);
          chosen.drain();
        }
        if (!stopped) gate.set(all.every(hasRoom));
      };
      const take = (value: T) => {
        try {
          if (watched$.value && meter !== undefined) meter.enter(() => next(value));
          else next(value);
        } catch (error) {
          subscriber.error(error);
        }
      };
      if (stopped) return;
      const listened = source.pipe(takeUntil(left));
      const subscribe = () =>
        listened.subscribe({
          next: (value) => (hasScope() ? withoutScope(() => take(value)) : take(value)),
          error: (error) => {
            failure = { error };
            update();
          },
          complete: () => void (stopped || all.forEach((branch) => branch.end())),
        });
      withGate(gate, () => (meter === undefined ? subscribe() : withScope({ into: meter }, subscribe)));
    });
}

interface Failure {
  readonly error: unknown;
}

/** What one pipeline has yet to take. */
class Branch<T> {
  readonly #queue: WatchedQueue<T>;
  #subscriber: Subscriber<T> | undefined;
  #gate: Gate | undefined;
  #stopWaiting: (() => void) | undefined;
  #busy = false;
  #ending: 'complete' | Failure | undefined;
  isLeft = false;

  constructor(
    private readonly name: string,
    buffer: number,
    private readonly meter: FlowMeter | undefined,
    private readonly changed: () => void,
  ) {
    this.#queue = new WatchedQueue(name, buffer);
    meter?.holds(this.#queue);
  }

  /** What the pipeline subscribes to. One that subscribes again continues with what comes then. */
  readonly values = new Observable<T>((subscriber) => {
    if (this.#subscriber?.closed === false)
      throw new Error(
        `a pipeline of ${this.name} has subscribed to its values twice at once: put share() before what both read`,
      );
    const { into } = currentScope();
    if (into !== undefined) this.meter?.into.add(into);
    this.#subscriber = subscriber;
    this.#gate = currentGate();
    this.isLeft = false;
    subscriber.add(() => this.leave());
    this.drain();
    this.changed();
  });

  get length(): number {
    return this.#queue.length;
  }

  get isDrained(): boolean {
    return this.#queue.length === 0 && !this.#busy;
  }

  push(value: T): void {
    if (!this.isLeft) this.#queue.push(value);
  }

  /** Hands on what the pipeline has room for. */
  readonly drain = (): void => {
    const subscriber = this.#subscriber;
    if (this.#busy || subscriber === undefined) return;
    this.#busy = true;
    const previous = swapGate(this.#gate);
    while (this.#queue.length > 0 && this.#gate?.isOpen !== false && !subscriber.closed) {
      const value = this.#queue.shift();
      if (watched$.value && this.meter !== undefined) this.meter.leave(() => subscriber.next(value));
      else subscriber.next(value);
    }
    swapGate(previous);
    this.#busy = false;
    if (subscriber.closed) return;
    if (this.#queue.length > 0) {
      this.#stopWaiting?.();
      this.#stopWaiting = this.#gate?.onceOpen(() => {
        this.drain();
        this.changed();
      });
    } else this.#finish(subscriber);
  };

  /** No more comes: the pipeline completes, or fails, when it has taken what there is. */
  end(ending: 'complete' | Failure = 'complete'): void {
    this.#ending ??= ending;
    this.drain();
  }

  leave(): void {
    if (this.isLeft) return;
    this.isLeft = true;
    this.#stopWaiting?.();
    this.#queue.clear();
    this.changed();
  }

  #finish(subscriber: Subscriber<T>): void {
    const ending = this.#ending;
    if (ending === undefined) return;
    withGate(this.#gate, () => (ending === 'complete' ? subscriber.complete() : subscriber.error(ending.error)));
  }
}
