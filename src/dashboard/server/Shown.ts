import { defer, type MonoTypeOperatorFunction, type Observable, type SchedulerLike, Subscription, tap } from 'rxjs';
import type { TinkerEvent } from '../../client/events.js';
import type { Step } from '../../operators/step.js';
import { columnsOfRow } from '../state/columns.js';
import type { Feed } from './Feed.js';
import { logChanges } from './logChanges.js';
import { type SampleToShow, sampleChanges, type ShowSamplesOptions } from './sampleChanges.js';
import { slimEvent } from './slimEvent.js';
import { stepChanges } from './stepChanges.js';

/** Sources on their way into a feed. What goes wrong with one is shown, and hurts no other. */
export class Shown {
  readonly #running = new Subscription();
  /** How many optimizer steps each model has made, by the events. */
  readonly #models = new Map<string, number>();
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
              for (const change of toChanges({ ...step, atMs: scheduler.now() })) feed.push(change);
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
      for (const change of toChanges(sample)) this.feed.push(change);
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
        tap((event) => {
          this.feed.push({ kind: 'event', event: slimEvent(event) });
          if (event.type === 'step-end' && !this.#stepsAreGiven) this.#stepOf(event);
        }),
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
    this.feed.push({ kind: 'steps', run, index: [index], columns: columnsOfRow({ ...metrics, atMs }) });
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
