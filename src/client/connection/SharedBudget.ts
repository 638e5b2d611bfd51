import { Observable, Subject, type Subscriber } from 'rxjs';
import { withGate } from '../../operators/pressure/gate.js';
import { mergeMapWeighted } from '../../operators/flow/mergeMapWeighted.js';
import type { BudgetUse } from '../session/pending.js';

export interface SharedBudgetOptions {
  /** How much may be in use at once; one call may overshoot it. A stream changes it. */
  readonly budget: number | Observable<number>;
  /** How many may run at once, whatever they weigh. Default: no limit. */
  readonly concurrency?: number | Observable<number>;
}

/** Work in line for the budget. */
interface Job {
  readonly weight: number;
  readonly work: Observable<unknown>;
  readonly subscriber: Subscriber<unknown>;
  isRunning: boolean;
}

/**
 * A budget that many calls share, such as bytes being sent: their work is one stream through {@link mergeMapWeighted}, in the order of
 * the calls. What a call holds is given back when its work is over, also when its caller leaves.
 */
export class SharedBudget {
  readonly #jobs = new Subject<Job>();
  #inUse = 0;
  #running = 0;
  #waiting = 0;

  constructor(options: SharedBudgetOptions) {
    const perform = mergeMapWeighted<Job, Observable<never>>((job) => this.#perform(job), {
      weight: ({ weight, subscriber }) => (subscriber.closed ? 0 : weight),
      warn: false,
      ...options,
    });
    // The first call may come from inside a pipeline, whose gate has nothing to do with this.
    withGate(undefined, () => this.#jobs.pipe(perform).subscribe());
  }

  /** What is in use, in bytes or in calls, and how many calls are in line. `size` is what the budget is now. */
  use(size: number, of: 'bytes' | 'calls' = 'bytes'): BudgetUse {
    return { inUse: of === 'bytes' ? this.#inUse : this.#running, size, waiting: this.#waiting };
  }

  /** The work, once there is room for it. */
  run<T>(weight: number, work: Observable<T>): Observable<T> {
    return new Observable((subscriber) => {
      const job: Job = { weight, work, subscriber, isRunning: false };
      this.#waiting++;
      subscriber.add(() => {
        if (!job.isRunning) return this.#waiting--;
        this.#running--;
        this.#inUse -= weight;
      });
      this.#jobs.next(job);
    });
  }

  #perform(job: Job): Observable<never> {
    return new Observable((over) => {
      const { weight, work, subscriber } = job;
      if (subscriber.closed) return over.complete();
      job.isRunning = true;
      this.#waiting--;
      this.#running++;
      this.#inUse += weight;
      subscriber.add(() => over.complete());
      work.subscribe(subscriber);
    });
  }
}
