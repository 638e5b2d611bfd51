import {
  AsyncSubject,
  forkJoin,
  map,
  type Observable,
  type ObservableInput,
  type Subscription,
  tap,
  throwIfEmpty,
} from 'rxjs';
import { combineOutputs } from '../../wire/combineOutputs.js';
import { Queue } from '../../support/Queue.js';
import { cancelling } from '../../support/cancelling.js';
import { missingMethod } from '../../operators/training/shared/missingMethod.js';
import type { ForwardPasses, Saves, TakesSnapshots, Trainable } from '../../operators/training/Trainable.js';
import type { Datum } from '../../wire/datum.js';
import type { ForwardBackwardOutput } from '../../wire/training.js';
import type { RlTrainer } from './GrpoOptions.js';

/** Part of a batch, from the moment its groups are there. */
interface Pass {
  readonly data: readonly Datum[];
  result: Observable<ForwardBackwardOutput> | undefined;
}

/** A batch whose parts are all there. */
interface ClosedBatch<S> {
  readonly passes: readonly Pass[];
  /** Optimizer steps still to come. */
  updates: number;
  /** Called when the weights after its last optimizer step are there: with a sampler over them, where one is wanted. */
  readonly done: (sampler: S | undefined) => void;
}

type Submit = (data: readonly Datum[]) => ObservableInput<ForwardBackwardOutput>;

/**
 * Stands between `train` and the trainer: passes of a batch may have been submitted before `train` asks for them, while the
 * rest of the batch was still being sampled; and every last optimizer step of a batch is followed, in the same burst, by a
 * snapshot of the weights.
 */
export class LoopTrainer<S> implements Trainable, Saves, TakesSnapshots<S>, ForwardPasses {
  readonly #closed = new Queue<ClosedBatch<S>>();
  #open: Pass[] = [];

  constructor(
    private readonly trainer: RlTrainer<S>,
    private readonly submit: Submit,
    private readonly running: Subscription,
    private readonly snapshots: boolean,
  ) {}

  saveState(...args: Parameters<Saves['saveState']>): ReturnType<Saves['saveState']> {
    if (this.trainer.saveState === undefined) throw missingMethod('saveState', 'checkpoints');
    return this.trainer.saveState(...args);
  }

  saveWeightsForSampler(...args: Parameters<Saves['saveState']>): ReturnType<Saves['saveState']> {
    if (this.trainer.saveWeightsForSampler === undefined)
      throw missingMethod('saveWeightsForSampler', 'checkpoints of samplers');
    return this.trainer.saveWeightsForSampler(...args);
  }

  saveWeightsAndGetSamplingClient(): ObservableInput<S> {
    if (this.trainer.saveWeightsAndGetSamplingClient === undefined) {
      throw missingMethod('saveWeightsAndGetSamplingClient', 'a policy');
    }
    return this.trainer.saveWeightsAndGetSamplingClient();
  }

  forward(...args: Parameters<ForwardPasses['forward']>): ReturnType<ForwardPasses['forward']> {
    if (this.trainer.forward === undefined) throw missingMethod('forward', 'evaluation by held-out data');
    return this.trainer.forward(...args);
  }

  /** Adds a pass to the batch in the making and submits it, unless an optimizer step before it is not submitted yet. */
  pass(data: readonly Datum[]): void {
    this.#open.push({ data, result: undefined });
    if (this.#closed.length === 0) this.#submitAll(this.#open);
  }

  /** The batch in the making is whole. */
  close(updates: number, done: (sampler: S | undefined) => void): void {
    this.#closed.push({ passes: this.#open, updates, done });
    this.#open = [];
  }

  forwardBackward(data: readonly Datum[]): ObservableInput<ForwardBackwardOutput> {
    const { passes } = this.#closed.peek()!;
    if (passes.length === 0) return this.submit(data);
    this.#submitAll(passes);
    return forkJoin(passes.map(({ result }) => result!)).pipe(map(combineOutputs));
  }

  forwardBackwardCustom(data: readonly Datum[]): ObservableInput<ForwardBackwardOutput> {
    return this.forwardBackward(data);
  }

  optimStep(params: Parameters<Trainable['optimStep']>[0]): ReturnType<Trainable['optimStep']> {
    const batch = this.#closed.peek()!;
    const update = this.#start(this.trainer.optimStep(params));
    batch.updates--;
    if (batch.updates > 0) return update;
    this.#closed.shift();
    const sampler = this.snapshots ? this.#start(this.saveWeightsAndGetSamplingClient()) : undefined;
    if (this.#closed.length === 0) this.#submitAll(this.#open);
    return sampler === undefined
      ? update.pipe(tap(() => batch.done(undefined)))
      : forkJoin([update, sampler]).pipe(
          tap(([, newest]) => batch.done(newest)),
          map(([updated]) => updated),
        );
  }

  #submitAll(passes: readonly Pass[]): void {
    for (const pass of passes) pass.result ??= this.#start(this.submit(pass.data));
  }

  /** Calls are in flight once they are made, but some, a fake's for example, only once they are subscribed to. */
  #start<T>(call: ObservableInput<T>): Observable<T> {
    const result = new AsyncSubject<T>();
    this.running.add(cancelling(call).pipe(throwIfEmpty()).subscribe(result));
    return result;
  }
}
