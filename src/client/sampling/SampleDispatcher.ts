import { identity, retry, throwError, timer, type Observable } from 'rxjs';
import { Budget, type Door } from '../connection/Budget.js';
import type { Connection } from '../connection/Connection.js';
import type { APIStatusError } from '../errors.js';
import { type TinkerError } from '../errors.js';
import { failedOnce } from '../connection/failedOnce.js';
import { meaningOf } from '../connection/failure.js';
import { onAnswer } from '../connection/onAnswer.js';
import { resend } from '../connection/resend.js';
import type { BudgetUse } from '../session/underWay.js';

const SLOTS = 400;
const CAREFUL_SLOTS = 10;
const CAREFUL_WEIGHT = 20;
const CAREFUL_MS = 10_000;
const PAUSE_MS = 1000;
const LARGE_PROMPT_BYTES = 128 * 1024;
const LARGE_PAUSE_MS = 5000;

/** Dispatch is paused: nothing was sent. */
class Paused extends Error {}

/**
 * Hands samples to the service: at most 400 submissions at once and no more bytes than the budget, shared by all
 * sampling clients of a service.
 *
 * When the service says "too much" (429), all dispatch pauses, and for ten seconds after the pause it goes carefully:
 * ten slots, and every byte counts twenty times. The submission itself is tried again as it was. What is held is given
 * back when the submission is answered; waiting for results takes nothing.
 */
export class SampleDispatcher implements Door {
  readonly #slots = new Budget(SLOTS, 'hard', { onRoom: () => this.#serveNext() });
  readonly #carefulSlots = new Budget(CAREFUL_SLOTS, 'hard');
  readonly #bytes: Budget;
  /** Who waits for room, in turn: clients with samples, and those who have not even made theirs. */
  readonly #blocked = new Set<Budget | (() => void)>();
  #pausedUntilMs = -Infinity;

  constructor(
    readonly connection: Connection,
    budgetBytes: number,
  ) {
    this.#bytes = new Budget(budgetBytes, 'soft');
  }

  /** What is taken of slots and bytes. */
  get use(): { readonly sampleSlots: BudgetUse; readonly sampleBytes: BudgetUse } {
    const careful = this.#carefulSlots.waiting;
    let blocked = 0;
    for (const each of this.#blocked) if (each instanceof Budget) blocked += each.atDoor;
    return {
      sampleSlots: {
        inUse: this.#slots.inUse - careful,
        size: this.#careful ? CAREFUL_SLOTS : SLOTS,
        waiting: this.#slots.waiting + careful + blocked,
      },
      sampleBytes: this.#bytes.use,
    };
  }

  /**
   * Whether there is a free slot, and a connection that would carry the submission at once. Samples wait for both before anything is
   * made for them: twenty thousand may wait.
   */
  get isOpen(): boolean {
    return this.#slots.hasRoom && this.connection.hasRoom('sampling', this.#serveAll);
  }

  wait(client: Budget): void {
    this.#blocked.add(client);
  }

  /** Whether a sample would be sent at once. If not, `onRoom` is called once when it may be. */
  hasRoom(onRoom: () => void): boolean {
    if (this.isOpen) return true;
    this.#blocked.add(onRoom);
    return false;
  }

  readonly #serveAll = (): void => {
    while (this.#serveNext());
  };

  /** Lets the next one send or make samples; who still waits after that is the last. Returns whether there was one, and room for it. */
  #serveNext(): boolean {
    const [next] = this.#blocked;
    if (next === undefined || !this.isOpen) return false;
    this.#blocked.delete(next);
    if (next instanceof Budget) next.serve();
    else next();
    return true;
  }

  dispatch<T>(bytes: number, send: () => Observable<T>): Observable<T> {
    // Nearly every submission is accepted at once: the operators that handle a refusal are built only after one.
    return onAnswer(this.#permitted(bytes, send), identity, (error) => this.#sendAgain(bytes, send, error));
  }

  /**
   * One try, with every permit it needs. A refused submission gives them back and takes them again for its next try, so
   * that after a pause all of them pass the ten slots.
   */
  #permitted<T>(bytes: number, send: () => Observable<T>): Observable<T> {
    // Read after each permit is granted: a 429 may have come while waiting for it.
    const sendUnlessPaused = (): Observable<T> =>
      this.connection.scheduler.now() < this.#pausedUntilMs ? throwError(() => new Paused()) : send();
    const weight = (): number => (this.#careful ? bytes * CAREFUL_WEIGHT : bytes);
    const sendCarefully = (): Observable<T> =>
      this.#careful ? this.#carefulSlots.hold(1, sendUnlessPaused) : sendUnlessPaused();
    return this.#slots.hold(1, () => this.#bytes.hold(weight, sendCarefully));
  }

  get #careful(): boolean {
    return this.connection.scheduler.now() - this.#pausedUntilMs < CAREFUL_MS;
  }

  /** Continues after a refusal or in a pause: waits it out and sends, as often as it takes. */
  #sendAgain<T>(bytes: number, send: () => Observable<T>, refusal: unknown): Observable<T> {
    const { scheduler } = this.connection;
    return failedOnce(refusal, () => this.#permitted(bytes, send)).pipe(
      resend(this.connection, 'asample', 'sample', { requestType: 'Sample' }),
      retry({
        delay: (error: unknown) => {
          if (!(error instanceof Paused)) {
            if (meaningOf(error, 'sample') !== 'throttle') return throwError(() => error as TinkerError);
            this.#pause(error as APIStatusError, bytes);
          }
          return timer(this.#pausedUntilMs - scheduler.now(), scheduler);
        },
      }),
    );
  }

  #pause(error: APIStatusError, bytes: number): void {
    const nowMs = this.connection.scheduler.now();
    const pauseMs = error.retryAfterMs ?? (bytes > LARGE_PROMPT_BYTES ? LARGE_PAUSE_MS : PAUSE_MS);
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, nowMs + pauseMs);
    this.connection.events.emit({
      type: 'dispatch-paused',
      pauseMs,
      waiting: this.use.sampleSlots.waiting + this.#bytes.waiting,
    });
  }
}
