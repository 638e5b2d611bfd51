import type { Attributes, Tracer } from '@opentelemetry/api';
import type { TinkerEvent } from '../client/events.js';
import type { RlEvent } from '../rl/pacing/rlEvent.js';
import { ATTRIBUTE, SPAN, SPAN_EVENT } from './names.js';
import { SampleSpans, type Content } from './SampleSpans.js';
import { SpanTree, type Branch } from './SpanTree.js';
import { waitOf } from './waits.js';

/** Turns the events of one run into spans: the run, its steps, their rollouts and requests, and the samples of rollouts. */
export class RunSpans {
  readonly #tree: SpanTree;
  readonly #run: Branch;
  readonly #samples: SampleSpans;
  /** Of each model: how many optimizer steps were sent, and how many are done. */
  readonly #sent = new Map<string, number>();
  readonly #done = new Map<string, number>();
  /** The model that rollouts are made for: the one that trains first. */
  #learner: string | undefined;
  /** By order of the group: which step its weights are of, counted from the first. */
  readonly #groups = new Map<number, number>();
  /** The step of the first weights: a run that was resumed does not begin at 0. */
  #first: number | undefined;

  constructor(
    tracer: Tracer,
    name: string,
    atMs: number,
    attributes: Attributes,
    private readonly content: Content | undefined,
    model: string | undefined,
  ) {
    this.#tree = new SpanTree(tracer);
    this.#run = this.#tree.start('run', name, undefined, atMs, attributes);
    this.#samples = new SampleSpans(this.#tree, this.#run, content, model);
  }

  next(event: TinkerEvent | RlEvent, atMs: number): void {
    const wait = waitOf(event);
    if (wait !== undefined) {
      const id = 'requestId' in event ? event.requestId : undefined;
      if (id !== undefined && this.#samples.wait(id, wait, atMs)) return;
      const span = (id === undefined ? undefined : this.#tree.get(`request ${id}`)) ?? this.#run;
      this.#tree.event(span, wait.name, wait.attributes, atMs);
      return;
    }
    switch (event.type) {
      case 'request-sent':
        if (event.requestType === 'Sample') return this.#samples.sent(event, atMs);
        return this.#sendTraining(event, atMs);
      case 'request-finished':
        if (event.requestType === 'Sample') return this.#samples.finished(event.requestId, atMs, undefined);
        return this.#tree.end(`request ${event.requestId}`, atMs);
      case 'request-failed':
      case 'request-abandoned': {
        const error = event.type === 'request-failed' ? event.error : new Error('abandoned');
        if (event.requestId === undefined) return;
        if (event.requestType === 'Sample') return this.#samples.finished(event.requestId, atMs, error);
        return this.#tree.fail(`request ${event.requestId}`, atMs, error, this.content !== undefined);
      }
      case 'step-end':
        return this.#endStep(event.target, event.metrics, atMs);
      case 'group-admitted':
        this.#first ??= event.step;
        this.#groups.set(event.order, event.step - this.#first);
        return;
      case 'rollout-started': {
        const step = this.#stepOf(LEARNER, this.#groups.get(event.order) ?? 0, atMs);
        this.#tree.start(`rollout ${event.order} ${event.index}`, SPAN.rollout, step, atMs, {
          [ATTRIBUTE.order]: event.order,
          [ATTRIBUTE.rollout]: event.index,
          [ATTRIBUTE.attempt]: event.attempt,
        });
        return;
      }
      case 'rollout-finished':
        return this.#tree.end(`rollout ${event.order} ${event.index}`, atMs, {
          [ATTRIBUTE.reward]: event.reward,
          [ATTRIBUTE.turns]: event.turns,
          [ATTRIBUTE.tokens]: event.tokens,
        });
      case 'rollout-failed': {
        const withMessage = this.content !== undefined;
        this.#tree.fail(`rollout ${event.order} ${event.index}`, atMs, event.error, withMessage);
        this.#tree.event(this.#run, SPAN_EVENT.rolloutFailed, { [ATTRIBUTE.order]: event.order }, atMs);
        return;
      }
      case 'group-finished':
        this.#groups.delete(event.order);
        return;
      case 'sample-started':
      case 'sample-finished':
      case 'sample-failed':
        return this.#samples.ofRollout(event, atMs);
      default:
    }
  }

  /** Ends every span. A run that failed says so. */
  end(atMs: number, error?: unknown): void {
    this.#samples.flush(atMs);
    if (error !== undefined) this.#tree.fail('run', atMs, error, this.content !== undefined);
    this.#tree.endAll(atMs);
  }

  #sendTraining(event: TinkerEvent & { readonly type: 'request-sent' }, atMs: number): void {
    const { requestType, target, requestId, bytes } = event;
    const isPass = requestType === 'ForwardBackward' || requestType === 'Forward' || requestType === 'OptimStep';
    // Also the steps of rollouts that were made before it.
    if (isPass) this.#learner ??= target;
    const step = this.#sent.get(target) ?? 0;
    const parent = isPass ? this.#stepOf(target, step, atMs) : this.#run;
    const attributes = { [ATTRIBUTE.requestId]: requestId, [ATTRIBUTE.target]: target, [ATTRIBUTE.bytes]: bytes };
    this.#tree.start(`request ${requestId}`, SPAN.request(requestType), parent, atMs, attributes);
    if (requestType === 'OptimStep') this.#sent.set(target, step + 1);
  }

  #key(target: string, step: number): string {
    return `step ${target === this.#learner ? LEARNER : target} ${step}`;
  }

  #stepOf(target: string, step: number, atMs: number): Branch {
    const key = this.#key(target, step);
    const attributes = { [ATTRIBUTE.step]: step + (this.#first ?? 0) };
    return this.#tree.get(key) ?? this.#tree.start(key, SPAN.step, this.#run, atMs, attributes);
  }

  #endStep(target: string, metrics: Readonly<Record<string, number>>, atMs: number): void {
    const step = this.#done.get(target) ?? 0;
    this.#done.set(target, step + 1);
    const told = Object.entries(metrics).map(([name, value]) => [ATTRIBUTE.metric(name), value] as const);
    this.#tree.end(this.#key(target, step), atMs, { ...Object.fromEntries(told), [ATTRIBUTE.target]: target });
  }
}

/** Stands for the model that learns, until its name is known. */
const LEARNER = '';
