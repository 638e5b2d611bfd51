import { trace, type Attributes, type Tracer } from '@opentelemetry/api';
import { asyncScheduler, type Observable, type SchedulerLike, type Subscription } from 'rxjs';
import type { TinkerEvent } from '../client/events.js';
import type { RlEvent } from '../rl/pacing/rlEvent.js';
import { SPAN } from './names.js';
import { RunSpans } from './RunSpans.js';
import type { Content } from './SampleSpans.js';

/** Options of `toOpenTelemetry`. */
export interface OpenTelemetryOptions {
  /** What makes spans. Default `trace.getTracer('tinker-rx')`: the provider that the application has registered. */
  readonly tracer?: Tracer;
  /** Name of the run's span. Default `tinker.run`. */
  readonly name?: string;
  /** Of the run's span: data, git commit. Default none. */
  readonly attributes?: Attributes;
  /** The name of the model, `gen_ai.request.model` of every sample. Default: not sent. */
  readonly model?: string;
  /** Puts prompts, completions and the messages of errors into spans: a tokenizer, to decode them with. Default: no content leaves. */
  readonly content?: Content;
  /** Tells the time of events that do not carry it. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Turns events into OpenTelemetry spans: run → step → rollout → sample, with the requests of training below their step.
 *
 * ```
 * run   ├──────────────────────────────────────────────┤
 * step   ├────────────────────┤├───────────────────┤
 * rollout ├────────┤ ├────────┤ …
 * sample   ├──┤├──┤   ├───────┤     waits are events on them
 * ```
 * Give it `service.events$`, merged with the events of `onEvent` if there is reinforcement learning. Subscribes at once. When the events
 * complete, fail, or the subscription is unsubscribed, every open span is ended. Holds open spans, and up to 4,096 samples whose rollout is not known yet.
 *
 * @example
 * toOpenTelemetry(merge(service.events$, rlEvents$), { model });
 */
export function toOpenTelemetry(
  events$: Observable<TinkerEvent | RlEvent>,
  {
    tracer = trace.getTracer('tinker-rx'),
    name = SPAN.run,
    attributes = {},
    model,
    content,
    scheduler = asyncScheduler,
  }: OpenTelemetryOptions = {},
): Subscription {
  const spans = new RunSpans(tracer, name, scheduler.now(), attributes, content, model);
  let isOver = false;
  const end = (error?: unknown) => {
    if (!isOver) spans.end(scheduler.now(), error);
    isOver = true;
  };
  const subscription = events$.subscribe({
    next: (event) => spans.next(event, 'atMs' in event ? event.atMs : scheduler.now()),
    error: (error: unknown) => end(error ?? new Error('unknown')),
    complete: () => end(),
  });
  subscription.add(() => end());
  return subscription;
}
