import { adamStep, createAdamState, resolveAdam, type AdamState } from './adamw.js';
import {
  adapterLayout,
  fromNamedTensors,
  initialWeights,
  resolveLora,
  toNamedTensors,
  type AdapterLayout,
} from '../model/adapter.js';
import { runYielding, type Steps } from '../thread/breathe.js';
import { EngineUserError } from '../errors.js';
import { findLoss, type PreparedLoss } from './losses.js';
import { LossInputs } from './lossInputs.js';
import { ResidentAdapter } from '../model/residentAdapter.js';
import { targetLogprobs, targetLogprobsBackward } from './targets.js';
import type { Transformer } from '../model/transformer.js';
import type {
  AdamOptions,
  EngineDatum,
  EngineTensor,
  ForwardBackwardResult,
  LoraOptions,
  LossConfig,
  ModelState,
} from '../types.js';

/** How the loss of a call is found: by name, or as derivatives computed elsewhere, one array a datum. */
export type LossSource =
  | { readonly name: string; readonly config: LossConfig }
  | { readonly gradients: readonly Float32Array[]; readonly losses: readonly number[] };

interface PreparedDatum {
  readonly tokens: Int32Array;
  readonly targets: Int32Array;
  readonly k: number;
  readonly shape: readonly number[];
  readonly loss: PreparedLoss;
}

/** An adapter in training: its weights, gathered gradients and optimizer state. Calls must not overlap. */
export class TrainingModel {
  readonly transformer: Transformer;
  readonly layout: AdapterLayout;
  #weights: Float32Array;
  #gradients: Float32Array | undefined;
  #adam: AdamState;

  constructor(transformer: Transformer, lora: LoraOptions) {
    this.transformer = transformer;
    this.layout = adapterLayout(transformer.base.shape, resolveLora(lora));
    this.#weights = initialWeights(this.layout);
    this.#adam = createAdamState(this.layout.size);
  }

  /** A copy of the adapter's weights, for a sampler. */
  copyWeights(): Float32Array {
    return this.#weights.slice();
  }

  /**
   * Runs the datums one after the other, so that neither memory nor the order of sums depends on how they are batched,
   * and lets samples run in between. A wrong datum is refused before any has run; a loss or a gradient that is not
   * finite is refused before the gradients are kept.
   */
  async forwardBackward(
    data: readonly EngineDatum[],
    source: LossSource,
    forwardOnly: boolean,
  ): Promise<ForwardBackwardResult> {
    if (data.length === 0) throw new EngineUserError('forward_backward needs at least one datum');
    const prepared = this.#prepare(data, source);
    const { heap } = this.transformer;
    const gradients = forwardOnly ? undefined : (this.#gradients ?? new Float32Array(this.layout.size));
    const adapter = new ResidentAdapter(heap, this.layout, this.#weights, gradients);
    try {
      const outputs: Record<string, EngineTensor>[] = [];
      let total = 0;
      for (const [index, datum] of prepared.entries()) {
        const { loss, logprobs } = await runYielding(this.#run(datum, adapter, forwardOnly));
        if (!Number.isFinite(loss)) throw this.#diverged(`the loss of datum ${index} is ${loss}`);
        total += loss;
        outputs.push({ logprobs: { dtype: 'float32', data: logprobs, shape: datum.shape } });
      }
      if (gradients !== undefined) {
        if (!adapter.hasFiniteGradients()) throw this.#diverged('a gradient is not finite');
        adapter.readGradients(gradients);
        this.#gradients = gradients;
      }
      return { outputs, metrics: { 'loss:sum': total } };
    } finally {
      adapter.dispose();
    }
  }

  /**
   * One AdamW step. Without gradients nothing changes, as in PyTorch if no parameter has one. Nor does anything where the
   * weights would not be finite afterwards, as with a learning rate that is far too high.
   */
  optimStep(options: AdamOptions): { readonly metrics: Record<string, number> } {
    const adam = resolveAdam(options);
    const gradients = this.#gradients;
    if (gradients === undefined) return { metrics: { 'unclipped_grad_l2:mean': 0 } };
    const weights = this.#weights.slice();
    const state = { m: this.#adam.m.slice(), v: this.#adam.v.slice(), step: this.#adam.step };
    const norm = adamStep(weights, gradients, state, adam);
    if (!allFinite(weights) || !allFinite(state.v)) throw this.#diverged('a weight would not be finite after it');
    this.#weights = weights;
    this.#adam = state;
    this.#gradients = undefined;
    return { metrics: { 'unclipped_grad_l2:mean': norm } };
  }

  exportState(optimizer: boolean): ModelState {
    const { layout } = this;
    const { m, v, step } = this.#adam;
    return {
      baseModel: layout.shape.name,
      lora: layout.lora,
      step,
      weights: toNamedTensors(layout, this.#weights),
      ...(optimizer ? { optimizer: { m: toNamedTensors(layout, m), v: toNamedTensors(layout, v) } } : {}),
    };
  }

  /** Replaces the weights; with `optimizer` also moments and step, which otherwise start from zero. Nothing changes on error. */
  loadState(state: ModelState, optimizer: boolean): void {
    if (state.baseModel !== this.layout.shape.name) {
      throw new EngineUserError(`checkpoint is of ${state.baseModel}, this model of ${this.layout.shape.name}`);
    }
    const weights = fromNamedTensors(this.layout, state.weights);
    let adam = createAdamState(this.layout.size);
    if (optimizer) {
      if (state.optimizer === undefined) throw new EngineUserError('checkpoint has no optimizer state');
      const { m, v } = state.optimizer;
      adam = { m: fromNamedTensors(this.layout, m), v: fromNamedTensors(this.layout, v), step: state.step };
    }
    this.#weights = weights;
    this.#adam = adam;
    this.#gradients = undefined;
  }

  #prepare(data: readonly EngineDatum[], source: LossSource): PreparedDatum[] {
    const { shape: limits } = this.layout;
    const named = 'name' in source ? findLoss(source.name, source.config) : undefined;
    return data.map((datum, index) => {
      const inputs = new LossInputs(datum, index, limits);
      const { tokens: targets, k, shape } = inputs.targets(limits.vocabulary);
      const loss = named === undefined ? givenLoss(source, inputs, index, targets.length) : named(inputs, shape);
      return { tokens: datum.tokens, targets, k, shape, loss };
    });
  }

  #diverged(what: string): EngineUserError {
    return new EngineUserError(
      `step ${this.#adam.step + 1}: ${what}. The run has diverged; nothing was changed. ` +
        'Lower the learning rate or clip gradients, and continue from the last good checkpoint',
    );
  }

  *#run(
    datum: PreparedDatum,
    adapter: ResidentAdapter,
    forwardOnly: boolean,
  ): Steps<{ readonly loss: number; readonly logprobs: Float32Array }> {
    const { transformer } = this;
    const { heap } = transformer;
    const { vocabulary } = this.layout.shape;
    const { tokens, targets, k } = datum;
    const mark = heap.mark();
    try {
      const tape = yield* transformer.forwardInSteps(tokens, adapter, { tape: !forwardOnly });
      const { logits, low } = transformer.head(tape.normed, tokens.length, adapter);
      const { logprobs, totals } = targetLogprobs(heap, logits, tokens.length, vocabulary, targets, k);
      const { loss, gradient } = datum.loss(logprobs);
      if (!forwardOnly && gradient.some((value) => value !== 0)) {
        targetLogprobsBackward(heap, logits, tokens.length, vocabulary, targets, k, totals, gradient);
        yield* transformer.backwardInSteps(tape, low, logits, adapter);
      }
      return { loss, logprobs };
    } finally {
      heap.release(mark);
    }
  }
}

function allFinite(values: Float32Array): boolean {
  // One multiplication for each is cheaper than a test: 0 · x is 0 for every finite x.
  let zero = 0;
  for (let i = 0; i < values.length; i++) zero += 0 * values[i]!;
  return zero === 0;
}

/** A loss whose value and derivatives were computed elsewhere. */
function givenLoss(source: LossSource, inputs: LossInputs, index: number, size: number): PreparedLoss {
  const gradient = 'gradients' in source ? source.gradients[index] : undefined;
  const loss = 'losses' in source ? (source.losses[index] ?? 0) : 0;
  if (gradient?.length !== size) {
    throw inputs.fault(`the loss gave ${gradient?.length ?? 'no'} derivatives for ${size} target logprobs`);
  }
  return () => ({ loss, gradient });
}
