import {
  defer,
  interval,
  map,
  type MonoTypeOperatorFunction,
  type Observable,
  type SchedulerLike,
  startWith,
  Subscription,
  tap,
} from 'rxjs';
import type { TinkerEvent } from '../../client/events.js';
import type { UnderWay } from '../../client/underWay.js';
import type { Step } from '../../operators/step.js';
import { columnsOfRow } from '../state/columns.js';
import type { Feed } from './Feed.js';
import { loadOf } from './loadOf.js';
import { logChanges } from './logChanges.js';
import { type SampleToShow, sampleChanges, type ShowSamplesOptions } from './sampleChanges.js';
import { slimEvent } from './slimEvent.js';
import { stepChanges } from './stepChanges.js';

/** How often a client is asked what it has to do. */
const ASK_MS = 250;

/** Sources on their way into a feed. What goes wrong with one is shown, and hurts no other. */
export class Shown {
  readonly #running = new Subscription();
  /** How many optimizer steps each model has made, by the events. */
  readonly #models = new Map<string, number>();
  /** Of the samples since the last step. */
  #rewards = { sum: 0, count: 0 };
  #samples = 0;
  #stepsAreGiven = false;

  constructor(
    readonly feed: Feed,
    readonly scheduler: SchedulerLike,
    readonly decode: ShowSamplesOptions['decode'],
  ) {}

  showSteps(run: string): MonoTypeOperatorFunction<Step> {
    return (steps) =>
      defer(() => {
        const { feed, scheduler } = this;
        const toChanges = stepChanges(run);
        let first = true;
        this.#stepsAreGiven = true;
        feed.push({ kind: 'run', run, status: 'running' });
        return steps.pipe(
          tap({
            next: (step) => {
              if (first && step.index === 0) feed.push({ kind: 'run', run, status: 'running', fresh: true });
              first = false;
              const timed = { ...step, metrics: this.#withReward(step.metrics), atMs: scheduler.now() };
              for (const change of toChanges([timed])) feed.push(change);
            },
            error: (error: unknown) =>
              feed.push({
                kind: 'run',
                run,
                status: 'failed',
                message: error instanceof Error ? error.message : String(error),
              }),
            complete: () => feed.push({ kind: 'run', run, status: 'finished' }),
          }),
        );
      });
  }

  showSamples<T extends SampleToShow>(options: ShowSamplesOptions = {}): MonoTypeOperatorFunction<T> {
    const { decode } = this;
    const toChanges = sampleChanges(() => this.scheduler.now(), this.#nextId, {
      ...(decode === undefined ? {} : { decode }),
      ...options,
    });
    return tap((sample) => {
      for (const change of toChanges(sample)) {
        this.feed.push(change);
        const { reward } = change.sample;
        if (reward === undefined) continue;
        this.#rewards.sum += reward;
        this.#rewards.count++;
      }
    });
  }

  subscribeSteps(run: string, steps: Observable<Step>): void {
    this.#subscribe(steps.pipe(this.showSteps(run)));
  }

  subscribeSamples(samples: Observable<SampleToShow>): void {
    this.#subscribe(samples.pipe(this.showSamples()));
  }

  subscribeEvents(events$: Observable<TinkerEvent>): void {
    this.#subscribe(
      events$.pipe(
        tap({
          next: (event) => {
            this.feed.push({ kind: 'event', event: slimEvent(event) });
            if (event.type === 'step-end' && !this.#stepsAreGiven) this.#stepOf(event);
          },
          complete: () => {
            for (const run of this.#models.keys()) this.feed.push({ kind: 'run', run, status: 'finished' });
          },
        }),
      ),
    );
  }

  subscribeLoad(underWay: () => UnderWay): void {
    const { feed, scheduler } = this;
    this.#subscribe(
      interval(ASK_MS, scheduler).pipe(
        startWith(0),
        map(() => loadOf(underWay(), scheduler.now(), (id) => feed.state.events.requests.get(id))),
        tap((load) => feed.setLoad(load)),
      ),
    );
  }

  subscribeLog(folder: string): void {
    this.#subscribe(logChanges(folder, this.#nextId, this.scheduler).pipe(tap((change) => this.feed.push(change))));
  }

  close(): void {
    this.#running.unsubscribe();
  }

  readonly #nextId = (): number => this.#samples++;

  #stepOf({ target: run, metrics, atMs }: Extract<TinkerEvent, { readonly type: 'step-end' }>): void {
    const index = this.#models.get(run) ?? 0;
    this.#models.set(run, index + 1);
    this.feed.push({
      kind: 'steps',
      run,
      index: [index],
      columns: columnsOfRow({ ...this.#withReward(metrics), atMs }),
    });
  }

  /** With the mean reward of the samples since the last step, unless the step tells of a reward itself. */
  #withReward(metrics: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
    const { sum, count } = this.#rewards;
    this.#rewards = { sum: 0, count: 0 };
    if (count === 0 || Object.keys(metrics).some((name) => /reward/i.test(name))) return metrics;
    return { ...metrics, 'reward/samples': sum / count };
  }

  #subscribe(source: Observable<unknown>): void {
    this.#running.add(
      source.subscribe({
        error: (error: unknown) => {
          const message = error instanceof Error ? error.message : String(error);
          const atMs = this.scheduler.now();
          this.feed.push({
            kind: 'event',
            event: { type: 'source-failed', atMs, level: 'error', text: `a source of this page failed: ${message}` },
          });
        },
      }),
    );
  }
}
