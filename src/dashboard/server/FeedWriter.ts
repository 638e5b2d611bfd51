import { type Either, isRight } from 'fp-ts/lib/Either.js';
import {
  defer,
  EMPTY,
  type MonoTypeOperatorFunction,
  type Observable,
  repeat,
  type SchedulerLike,
  Subscription,
  switchMap,
  tap,
  timer,
} from 'rxjs';
import { messageOf } from '../../support/messageOf.js';
import type { TinkerEvent } from '../../client/events.js';
import type { PendingWork } from '../../client/session/pending.js';
import { findBottleneck, type FlowReport } from '../../operators/pressure/flow.js';
import type { Step } from '../../operators/training/step.js';
import { toColumns } from '../state/rows.js';
import type { Feed } from './Feed.js';
import { loadOf } from './loadOf.js';
import { rolloutRecords } from '../../rl/log/rolloutRecords.js';
import type { RlStep } from '../../rl/learning/rlStep.js';
import { groupChanges } from './groupChanges.js';
import { logChanges } from './logChanges.js';
import { type SampleToShow, sampleChanges, type ShowSamplesOptions } from './sampleChanges.js';
import { slimEvent } from './slimEvent.js';
import { stepChanges } from './stepChanges.js';

/** How often a client is asked what it has to do. */
const ASK_MS = 250;
const MANY_CALLS = 4000;

/** How the steps of a run are shown on the page. */
export interface ShowStepsOptions {
  /** What the run was started with, as `metricsLog` takes it: the page lists the options in which runs differ. Default: nothing. */
  readonly config?: unknown;
}

/** Sources on their way into a feed. What goes wrong with one is shown, and hurts no other. */
export class FeedWriter {
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

  showSteps<T extends Step>(run: string, { config }: ShowStepsOptions = {}): MonoTypeOperatorFunction<T> {
    return (steps) =>
      defer(() => {
        const { feed, scheduler } = this;
        const toChanges = stepChanges(run);
        const toGroups = groupChanges(run);
        let first = true;
        this.#stepsAreGiven = true;
        feed.push({ kind: 'run', run, status: 'running', config });
        return steps.pipe(
          tap({
            next: (step) => {
              if (first && step.index === 0) feed.push({ kind: 'run', run, status: 'running', fresh: true });
              first = false;
              const timed = { ...step, metrics: this.#withReward(step.metrics), atMs: scheduler.now() };
              for (const change of toChanges([timed])) feed.push(change);
              if (hasGroups(step)) for (const change of toGroups(rolloutRecords(step, this.#decode))) feed.push(change);
            },
            error: (error: unknown) => feed.push({ kind: 'run', run, status: 'failed', message: messageOf(error) }),
            complete: () => feed.push({ kind: 'run', run, status: 'finished' }),
          }),
        );
      });
  }

  showSamples<T extends SampleToShow | Either<unknown, SampleToShow>>(
    options: ShowSamplesOptions = {},
  ): MonoTypeOperatorFunction<T> {
    const { decode } = this;
    const toChanges = sampleChanges(() => this.scheduler.now(), this.#nextId, {
      ...(decode === undefined ? {} : { decode }),
      ...options,
    });
    return tap((given) => {
      const sample = shownOf(given);
      if (sample === undefined) return;
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
            // Steps that are passed in carry their metrics and checkpoints.
            if (this.#stepsAreGiven) return;
            if (event.type === 'step-end') this.#stepOf(event);
            if (event.type === 'checkpoint-saved') this.#checkpointOf(event);
          },
          complete: () => {
            for (const run of this.#models.keys()) this.feed.push({ kind: 'run', run, status: 'finished' });
          },
        }),
      ),
    );
  }

  subscribeLoad(pending: () => PendingWork): void {
    const { feed, scheduler } = this;
    const ask = defer(() => {
      const load = loadOf(pending(), scheduler.now(), (id) => feed.state.events.requests.get(id));
      feed.setLoad(load);
      // Asking is a walk over all calls: if they are very many, it is done more rarely.
      return timer(ASK_MS * (1 + Math.floor(load.calls / MANY_CALLS)), scheduler);
    });
    this.#subscribe(ask.pipe(repeat()));
  }

  /** Subscribes to reports only while a page is open, because counting costs time. */
  subscribeFlow(reports$: Observable<readonly FlowReport[]>): void {
    this.#subscribe(
      this.feed.watched$.pipe(
        switchMap((watched) => (watched ? reports$ : EMPTY)),
        tap((reports) => this.feed.setFlow({ reports, bottleneck: findBottleneck(reports)?.id })),
      ),
    );
  }

  subscribeLog(folder: string): void {
    this.#subscribe(logChanges(folder, this.#nextId, this.scheduler).pipe(tap((change) => this.feed.push(change))));
  }

  close(): void {
    this.#running.unsubscribe();
  }

  /** What is only looked at must not end: tokens that cannot be decoded are shown as numbers. */
  readonly #decode = (tokens: Int32Array): string => {
    try {
      if (this.decode !== undefined) return this.decode(tokens);
    } catch {
      // As below.
    }
    return tokens.join(' ');
  };

  readonly #nextId = (): number => this.#samples++;

  #stepOf({ target: run, metrics, atMs }: Extract<TinkerEvent, { readonly type: 'step-end' }>): void {
    const index = this.#models.get(run) ?? 0;
    this.#models.set(run, index + 1);
    this.feed.push({
      kind: 'steps',
      run,
      ...toColumns([{ index, values: { ...this.#withReward(metrics), atMs } }]),
    });
  }

  #checkpointOf({ target: run, path, atMs }: Extract<TinkerEvent, { readonly type: 'checkpoint-saved' }>): void {
    const steps = this.#models.get(run) ?? 0;
    const name = path.slice(path.lastIndexOf('/') + 1);
    const where = path.includes('/sampler_weights/') ? { samplerPath: path } : { statePath: path };
    this.feed.push({
      kind: 'checkpoint',
      run,
      checkpoint: { name, steps, batches: steps, kept: true, ...where },
      atMs,
    });
  }

  /** With the mean reward of the samples since the last step, unless the step has a reward. */
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
          const message = messageOf(error);
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

/** Whether it is a step of reinforcement learning, with its rollouts. */
const hasGroups = (step: Step): step is RlStep => 'groups' in step && Array.isArray(step.groups);

/** The sample of a result, if it is one: a failure among settled results is not shown. */
function shownOf(given: SampleToShow | Either<unknown, SampleToShow>): SampleToShow | undefined {
  if (!('_tag' in given)) return given;
  return isRight(given) ? given.right : undefined;
}
