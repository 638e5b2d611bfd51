import type { Observer } from 'rxjs';

/** What a future's work may report to its future while it runs. */
export interface FutureProgress {
  /** The service has accepted the work under this id. */
  accepted(requestId: string): void;
}

/**
 * The one result of a future: what its work reports to, and what its readers read, at once or when it comes.
 *
 * It is an AsyncSubject, its observer and the progress of the work in one object: twenty thousand samples may wait, and
 * each of them has one.
 */
export class Outcome implements Observer<unknown>, FutureProgress {
  requestId: string | undefined;
  #state: 'pending' | 'complete' | 'failed' = 'pending';
  #hasValue = false;
  /** The value, or the failure. */
  #result: unknown;
  #readers: Observer<never>[] | undefined;
  readonly #onSettled: ((error: unknown) => void) | undefined;
  readonly #named: ((error: unknown) => unknown) | undefined;

  /** `onSettled` is told after all readers: with the failure, or with undefined. `named` makes the failure of an error. */
  constructor(onSettled?: (error: unknown) => void, named?: (error: unknown) => unknown) {
    this.#onSettled = onSettled;
    this.#named = named;
  }

  accepted(requestId: string): void {
    this.requestId = requestId;
  }

  /** The last value counts. */
  next(value: unknown): void {
    if (this.#state !== 'pending') return;
    this.#hasValue = true;
    this.#result = value;
  }

  error(error: unknown): void {
    this.fail(this.#named === undefined ? error : this.#named(error));
  }

  complete(): void {
    if (this.#state !== 'pending') return;
    this.#state = 'complete';
    const readers = this.#take();
    if (this.#hasValue) for (const reader of readers) reader.next(this.#result as never);
    for (const reader of readers) reader.complete();
    this.#onSettled?.(undefined);
  }

  /** Ends with this failure as it is. */
  fail(error: unknown): void {
    if (this.#state !== 'pending') return;
    this.#state = 'failed';
    this.#result = error;
    for (const reader of this.#take()) reader.error(error);
    this.#onSettled?.(error);
  }

  /** Tells the reader now, or when the work is over. */
  read(reader: Observer<never>): void {
    switch (this.#state) {
      case 'pending':
        if (this.#readers === undefined) this.#readers = [reader];
        else this.#readers.push(reader);
        return;
      case 'failed':
        return reader.error(this.#result);
      case 'complete':
        if (this.#hasValue) reader.next(this.#result as never);
        return reader.complete();
    }
  }

  /** The reader no longer wants to know. */
  forget(reader: Observer<never>): void {
    const at = this.#readers?.indexOf(reader) ?? -1;
    if (at >= 0) this.#readers!.splice(at, 1);
  }

  #take(): Observer<never>[] {
    const readers = this.#readers ?? [];
    this.#readers = undefined;
    return readers;
  }
}

/** Reads an outcome for a promise: it resolves with the value, or with undefined where there is none. */
export class PromiseReader<A> implements Observer<A> {
  #value: A | undefined;

  constructor(
    readonly resolve: (value: A) => void,
    readonly reject: (error: unknown) => void,
  ) {}

  next(value: A): void {
    this.#value = value;
  }
  error(error: unknown): void {
    this.reject(error);
  }
  complete(): void {
    this.resolve(this.#value as A);
  }
}
