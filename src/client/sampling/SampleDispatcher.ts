import { BehaviorSubject, Subject, concat, delay, map, of, switchMap, type Observable } from 'rxjs';
import type { Connection } from '../connection/Connection.js';
import { retryFailures } from '../connection/retryFailures.js';
import { SharedBudget } from '../connection/SharedBudget.js';
import type { TinkerError } from '../errors.js';
import type { BudgetUse } from '../session/pending.js';

/** How many bytes and how many submissions may be on their way at once. */
interface Limits {
  readonly bytes: number;
  readonly slots: number;
}

const SLOTS = 400;
const CAREFUL_SLOTS = 10;
const CAREFUL_SHARE = 1 / 20;
const CAREFUL_MS = 10_000;
const PAUSE_MS = 1000;
const LARGE_PROMPT_BYTES = 128 * 1024;
const LARGE_PAUSE_MS = 5000;

/**
 * Hands samples to the service: at most 400 submissions at once and no more bytes than the budget, shared by all
 * sampling clients of a service.
 *
 * ```
 * samples   a-b-c-d-e-f--------------►     one stream through mergeMapWeighted, its weight in bytes
 * answers   ---429-------------------►
 * limits    N--P-----C---------------N     nothing for a second, then a twentieth and ten slots for ten seconds
 * ```
 * What a submission holds is given back when it is answered; waiting for results takes nothing. One that the service refuses with a
 * 429 takes its place in the stream again, as it was.
 */
export class SampleDispatcher {
  readonly #limits: BehaviorSubject<Limits>;
  readonly #throttled = new Subject<number>();
  readonly #queue: SharedBudget;
  #pausedUntilMs = -Infinity;

  constructor(
    readonly connection: Connection,
    readonly budgetBytes: number,
  ) {
    const { scheduler, background } = connection;
    const normal: Limits = { bytes: budgetBytes, slots: SLOTS };
    const paused: Limits = { bytes: -1, slots: CAREFUL_SLOTS };
    const careful: Limits = { bytes: budgetBytes * CAREFUL_SHARE, slots: CAREFUL_SLOTS };
    this.#limits = new BehaviorSubject(normal);
    this.#throttled
      .pipe(
        switchMap((pauseMs) =>
          concat(
            of(paused),
            of(careful).pipe(delay(pauseMs, scheduler)),
            of(normal).pipe(delay(CAREFUL_MS, background)),
          ),
        ),
      )
      .subscribe(this.#limits);
    this.#queue = new SharedBudget({
      budget: this.#limits.pipe(map(({ bytes }) => bytes)),
      concurrency: this.#limits.pipe(map(({ slots }) => slots)),
    });
  }

  /** What is taken of slots and bytes. */
  get use(): { readonly sampleSlots: BudgetUse; readonly sampleBytes: BudgetUse } {
    return {
      sampleSlots: this.#queue.use(this.#limits.value.slots, 'calls'),
      sampleBytes: this.#queue.use(this.budgetBytes),
    };
  }

  /** Submits a sample until the service has accepted it. */
  dispatch<T>(bytes: number, submission: Observable<T>): Observable<T> {
    return this.#queue.run(bytes, submission).pipe(
      retryFailures(this.connection, {
        phase: 'sample',
        path: 'asample',
        about: { requestType: 'Sample' },
        onThrottle: (error) => this.#pause(error, bytes),
      }),
    );
  }

  #pause({ retryAfterMs }: TinkerError, bytes: number): void {
    const { events, scheduler } = this.connection;
    const pauseMs = retryAfterMs ?? (bytes > LARGE_PROMPT_BYTES ? LARGE_PAUSE_MS : PAUSE_MS);
    const nowMs = scheduler.now();
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, nowMs + pauseMs);
    this.#throttled.next(this.#pausedUntilMs - nowMs);
    events.emit({ type: 'dispatch-paused', pauseMs, waiting: this.use.sampleSlots.waiting });
  }
}
