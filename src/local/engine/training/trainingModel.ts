import { adamStep, createAdamState, resolveAdam, type AdamState } from './adamw.js';
import {
  adapterLayout,
  fromNamedTensors,
  initialWeights,
  resolveLora,
  toNamedTensors,
  type AdapterLayout,
} from '../model/adapter.js';
import { runDatum, type PreparedDatum } from './runDatum.js';
import { runYielding } from '../thread/breathe.js';
import { EngineUserError } from '../errors.js';
import { findLoss, type PreparedLoss } from './losses.js';
import { LossInputs } from './lossInputs.js';
import { ResidentAdapter, residentFloats } from '../model/residentAdapter.js';
import { passFloats } from '../model/tapeMemory.js';
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

/** 192 MiB: all layers of SmolLM2-135M for a datum of 256 tokens, and the process stays under 1.5 GB for one of 1,024. */
const DEFAULT_TAPE_FLOATS = 48 * 2 ** 20;

/** An adapter in training: its weights, gathered gradients and optimizer state. Calls must not overlap. */
export class TrainingModel {
  readonly transformer: Transformer;
  readonly layout: AdapterLayout;
  /** Floats of activations that a pass keeps; what does not fit is computed again. */
  readonly #tapeFloats: number;
  #weights: Float32Array;
  #gradients: Float32Array | undefined;
  #adam: AdamState;

  constructor(transformer: Transformer, lora: LoraOptions, tapeFloats = DEFAULT_TAPE_FLOATS) {
    this.transformer = transformer;
    this.#tapeFloats = tapeFloats;
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
    this.#requireMemory(prepared, forwardOnly);
    const gradients = forwardOnly ? undefined : (this.#gradients ?? new Float32Array(this.layout.size));
    const adapter = new ResidentAdapter(heap, this.layout, this.#weights, gradients);
    try {
      const outputs: Record<string, EngineTensor>[] = [];
      let total = 0;
      for (const [index, datum] of prepared.entries()) {
        const { loss, logprobs } = await runYielding(
          runDatum(this.transformer, datum, adapter, forwardOnly ? undefined : this.#tapeFloats),
        );
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

  /** Refuses what cannot fit before any of it has run. */
  #requireMemory(data: readonly PreparedDatum[], forwardOnly: boolean): void {
    const rows = Math.max(...data.map(({ tokens }) => tokens.length));
    const { shape, lora } = this.layout;
    const pass = passFloats(shape, lora.rank, rows, forwardOnly ? 0 : this.#tapeFloats);
    const adapter = residentFloats(this.layout) * (forwardOnly ? 1 : 1.5);
    this.transformer.heap.require(pass + adapter, `a pass over ${rows} tokens at rank ${lora.rank}`);
  }

  #diverged(what: string): EngineUserError {
    return new EngineUserError(
      `step ${this.#adam.step + 1}: ${what}. The run has diverged; nothing was changed. ` +
        'Lower the learning rate or clip gradients, and continue from the last good checkpoint',
    );
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
