import { Observable, Subject, type Subscriber } from 'rxjs';
import { withGate } from '../../operators/gate.js';
import { mergeMapWeighted } from '../../operators/mergeMapWeighted.js';
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
  state: 'waiting' | 'running';
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
    const weight = ({ weight: asked, subscriber }: Job): number => (subscriber.closed ? 0 : asked);
    // Whoever makes the first call may be inside a pipeline; its gate is none of ours.
    withGate(undefined, () =>
      this.#jobs.pipe(mergeMapWeighted((job) => this.#perform(job), { weight, warn: false, ...options })).subscribe(),
    );
  }

  /** Bytes in use and calls in line. `size` is what the budget is now. */
  use(size: number): BudgetUse {
    return { inUse: this.#inUse, size, waiting: this.#waiting };
  }
  /** The same in calls. */
  useOfSlots(size: number): BudgetUse {
    return { inUse: this.#running, size, waiting: this.#waiting };
  }

  /** The work, once there is room for it. */
  run<T>(weight: number, work: Observable<T>): Observable<T> {
    return new Observable((subscriber) => {
      const job: Job = { weight, work, subscriber, state: 'waiting' };
      this.#waiting++;
      subscriber.add(() => this.#leave(job));
      this.#jobs.next(job);
    });
  }

  #perform(job: Job): Observable<never> {
    return new Observable((over) => {
      const { weight, work, subscriber } = job;
      if (subscriber.closed) return over.complete();
      job.state = 'running';
      this.#waiting--;
      this.#running++;
      this.#inUse += weight;
      subscriber.add(() => over.complete());
      work.subscribe(subscriber);
    });
  }

  #leave({ weight, state }: Job): void {
    if (state === 'waiting') this.#waiting--;
    else {
      this.#running--;
      this.#inUse -= weight;
    }
  }
}
