import { asyncScheduler, BehaviorSubject } from 'rxjs';
import type { FlowReport } from '../flow.js';
import type { Gate } from '../gate.js';

/** Whether somebody watches `flow$`: nothing is counted otherwise. */
export const watched$ = new BehaviorSubject(false);
/** The named operators that run, and those that have ended since the last report. */
export const meters = new Set<FlowMeter>();
/** Whether any named operator runs. */
export const running$ = new BehaviorSubject(false);

/** What subscribing takes upstream: the operator that is being built, and the one that its values go to. */
export interface FlowScope {
  readonly owner?: FlowMeter;
  readonly into?: FlowMeter;
}

// Subscribing is synchronous, as for gates.
const NONE: FlowScope = {};
let scope = NONE;

export const currentScope = (): FlowScope => scope;

/** Runs `body` with another scope. */
export function withScope<R>(other: FlowScope, body: () => R): R {
  const previous = scope;
  scope = other;
  try {
    return body();
  } finally {
    scope = previous;
  }
}

/** Runs `handle`, which a synchronous source calls while it is subscribed to, outside of any scope. */
export function withoutScope(handle: () => void): void {
  withScope(NONE, handle);
}

/** Whether something is being subscribed to. */
export const hasScope = (): boolean => scope !== NONE;

let ids = 0;

/** Counts one subscription of a named operator. */
export class FlowMeter {
  readonly id = ++ids;
  readonly into = new Set<FlowMeter>();
  /** The gate that the operator shows to its source: its own, or the one downstream if it has none. */
  own: Gate | undefined;
  readonly #queues: { readonly length: number }[] = [];
  #itemsIn = 0;
  #itemsOut = 0;
  #busyMs = 0;
  #gatedMs = 0;
  #totalMs = 0;
  /** Time inside the operator's own code since the last look, and time downstream of it. */
  #workMs = 0;
  #awayMs = 0;
  #ended = false;

  constructor(
    readonly name: string,
    readonly downstream: Gate | undefined,
  ) {
    this.own = downstream;
    meters.add(this);
    if (!running$.value) running$.next(true);
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** A queue of the operator, for `waiting`. */
  holds(queue: { readonly length: number }): void {
    this.#queues.push(queue);
  }

  /** A value comes in; `handle` is the operator's code, and may be that of everything downstream. */
  enter(handle: () => void): void {
    this.#itemsIn++;
    const [awayMs, startMs] = [this.#awayMs, asyncScheduler.now()];
    handle();
    this.#workMs += asyncScheduler.now() - startMs - (this.#awayMs - awayMs);
  }

  /** A value goes out; `handle` is the code of everything downstream. */
  leave(handle: () => void): void {
    this.#itemsOut++;
    const [awayMs, startMs] = [this.#awayMs, asyncScheduler.now()];
    handle();
    // Not added up: a value that came in meanwhile has counted its own.
    this.#awayMs = awayMs + asyncScheduler.now() - startMs;
  }

  /** Looks at the gates, for a period that has passed since the last look. */
  look(periodMs: number): void {
    const workMs = Math.min(this.#workMs, periodMs);
    this.#workMs -= workMs;
    const restMs = periodMs - workMs;
    const gated = this.downstream?.isOpen === false;
    this.#totalMs += periodMs;
    this.#busyMs += workMs;
    if (gated) this.#gatedMs += restMs;
    else if (this.own?.isOpen === false) this.#busyMs += restMs;
  }

  /** The figures so far; the shares are those since the last report. */
  report(): FlowReport {
    const share = (ms: number) => (this.#totalMs > 0 ? ms / this.#totalMs : 0);
    const [busyShare, gatedShare] = [share(this.#busyMs), share(this.#gatedMs)];
    [this.#busyMs, this.#gatedMs, this.#totalMs] = [0, 0, 0];
    const { id, name, into } = this;
    const waiting = this.#ended ? 0 : this.#queues.reduce((sum, { length }) => sum + length, 0);
    const figures = { itemsIn: this.#itemsIn, itemsOut: this.#itemsOut, waiting, busyShare, gatedShare };
    return { id, name, into: Array.from(into, (next) => next.id), ...figures, ended: this.#ended };
  }

  end(): void {
    this.#ended = true;
    if (!watched$.value) meters.delete(this);
    for (const meter of meters) if (!meter.#ended) return;
    running$.next(false);
  }
}
