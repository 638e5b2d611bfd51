import type { ClientConfig, DynamicConfig, QueueState } from '../../wire/index.js';
import type { LockstepClock } from '../queue/lockstepClock.js';
import { FaultInjector, type FaultPlan } from './faults.js';
import { Quota, type Quotas } from './quota.js';

/** Milliseconds before a request is carried out; a function may tell endpoints apart. */
export type Latency = number | ((endpoint: string) => number);

export interface ControlSettings {
  readonly flags: Partial<ClientConfig>;
  readonly dynamicFlags: Partial<DynamicConfig>;
  readonly latencyMs: Latency;
  readonly faults: FaultPlan;
  readonly quotas: Quotas;
}

/** The states of a paused queue. */
export type PausedState = Exclude<QueueState, 'active' | 'unknown'>;

/** What may be turned while the service runs. */
export class Controls {
  /** Answered by client/config; a client reads them once. */
  flags: Partial<ClientConfig>;
  /** Answered by client/dynamic_config; a client reads them again and again. */
  dynamicFlags: Partial<DynamicConfig>;
  /** How long every answer is delayed, in milliseconds; a function is asked for each request. May be set at any time. */
  latencyMs: Latency;
  /** How many samples are accepted at once. */
  readonly sampling: Quota;
  /** How many training operations are accepted at once. */
  readonly training: Quota;
  #faults: FaultInjector;
  #pause: { readonly state: PausedState; readonly reason?: string } | undefined;
  #resumed: (() => void)[] = [];

  constructor(
    settings: ControlSettings,
    private readonly clock: LockstepClock,
    private readonly onQueueChange: () => void,
  ) {
    this.flags = settings.flags;
    this.dynamicFlags = settings.dynamicFlags;
    this.latencyMs = settings.latencyMs;
    this.#faults = new FaultInjector(settings.faults);
    this.sampling = new Quota(settings.quotas.sampling);
    this.training = new Quota(settings.quotas.training);
  }

  /** Length of a cycle, in milliseconds. 0 runs work as soon as it arrives; with `Infinity`, cycles start only by {@link step}. */
  get clockMs(): number {
    return this.clock.clockMs;
  }

  set clockMs(clockMs: number) {
    this.clock.clockMs = clockMs;
  }

  /**
   * Starts a cycle of training now, with what has arrived, and resolves when its work has run. A test that sets `clockMs` to `Infinity`
   * counts cycles by hand this way, however busy the machine is. Does nothing while the queue is paused.
   */
  step(): Promise<void> {
    return this.clock.step();
  }

  /** A new plan; its counts start from 1. */
  set faults(plan: FaultPlan) {
    this.#faults = new FaultInjector(plan);
  }

  /** Decides which requests fail, and how. */
  get injector(): FaultInjector {
    return this.#faults;
  }

  /** What the server reports about its queue. */
  get queueState(): {
    /** `active`, or how it is paused. */
    readonly state: QueueState;
    /** Why it is paused, in words. */
    readonly reason?: string;
  } {
    return this.#pause ?? { state: 'active' };
  }

  /** Work is accepted and does not start until {@link resume}; polls are answered with the state and the reason. */
  pause(state: PausedState = 'paused_capacity', reason?: string): void {
    this.#pause = { state, ...(reason === undefined ? {} : { reason }) };
    this.clock.pause();
    this.onQueueChange();
  }

  /** Ends a pause: work that was held continues. */
  resume(): void {
    this.#pause = undefined;
    this.clock.resume();
    const resumed = this.#resumed;
    this.#resumed = [];
    for (const wake of resumed) wake();
    this.onQueueChange();
  }

  /** Resolves at once, or when a paused queue continues. */
  whenActive(): Promise<void> {
    if (this.#pause === undefined) return Promise.resolve();
    return new Promise((resolve) => this.#resumed.push(resolve));
  }
}
