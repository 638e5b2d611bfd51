import { adapterLayout, fromNamedTensors, resolveLora } from '../model/adapter.js';
import { BaseLoader, loadBaseModel } from '../model/baseModel.js';
import { breathe } from './breathe.js';
import { EngineUserError } from '../errors.js';
import { Heap, type HeapOptions } from '../numeric/heap.js';
import { SamplePool } from '../sampling/samplePool.js';
import { checkSample } from '../sampling/sampleRequest.js';
import { Sampler } from '../sampling/sampler.js';
import { parameterCount, type ModelShape } from '../model/shapes.js';
import type { TokenTable } from '../model/vocabulary.js';
import { TrainingModel, type LossSource } from '../training/trainingModel.js';
import { Transformer } from '../model/transformer.js';
import type {
  AdamOptions,
  EngineDatum,
  ForwardBackwardResult,
  LoraOptions,
  ModelState,
  NamedTensor,
  SampleRequest,
  SampleResult,
} from '../types.js';
import type { StoredTensor } from '../../weights/OpenedModel.js';

export interface CoreOptions extends HeapOptions {
  /** Bytes of activations that a training pass keeps; layers beyond are computed again. Default 192 MiB. */
  readonly activationBytes?: number | undefined;
}

export interface BaseSource {
  readonly shape: ModelShape;
  readonly weights: Readonly<Record<string, NamedTensor>>;
}

/** Where a sampler's weights come from. */
export type SamplerSource =
  | { readonly baseModel: string }
  | { readonly modelId: string }
  | { readonly state: ModelState };

/**
 * All models and samplers of one thread. The caller sees to it that calls on one model do not overlap; samples may run
 * beside anything.
 */
export class EngineCore {
  readonly heap: Heap;
  readonly #bases: Map<string, Transformer>;
  readonly #loading = new Map<string, BaseLoader>();
  readonly #models = new Map<string, TrainingModel>();
  readonly #samplers = new Map<string, Sampler>();
  readonly #pool: SamplePool;
  readonly #tapeFloats: number | undefined;
  #sampling = false;
  /** The pass that was asked for last; the next one waits for it. */
  #lastPass: Promise<unknown> = Promise.resolve();

  constructor(bases: readonly BaseSource[], { activationBytes, ...options }: CoreOptions = {}) {
    this.heap = new Heap(options);
    this.#pool = new SamplePool(this.heap);
    this.#tapeFloats = activationBytes === undefined ? undefined : activationBytes / 4;
    this.#bases = new Map(
      bases.map(({ shape, weights }) => [
        shape.name,
        new Transformer(this.heap, loadBaseModel(this.heap, shape, weights)),
      ]),
    );
  }

  /** Makes ready for a model whose tensors then come one by one. `dtype` is that of most of them. */
  beginBase(shape: ModelShape, dtype: StoredTensor['dtype']): void {
    this.heap.require((parameterCount(shape) * (dtype === 'bf16' ? 2 : 4)) / 4, `${shape.name} in ${dtype}`);
    this.#loading.set(shape.name, new BaseLoader(this.heap, shape));
  }

  putTensor(baseModel: string, name: string, tensor: StoredTensor): void {
    this.#loading.get(baseModel)!.put(name, tensor);
  }

  finishBase(baseModel: string, tokens: TokenTable): void {
    const base = this.#loading.get(baseModel)!.finish(tokens, true);
    this.#loading.delete(baseModel);
    this.#bases.set(baseModel, new Transformer(this.heap, base));
  }

  createModel(modelId: string, baseModel: string, lora: LoraOptions, optimizer = 'adamw'): void {
    if (this.#models.has(modelId)) throw new EngineUserError(`model ${modelId} exists already`);
    if (optimizer !== 'adamw') {
      const reason = optimizer === 'dimuon' ? ': no public source defines its update' : '';
      throw new EngineUserError(
        `optimizer ${JSON.stringify(optimizer)} is not supported here${reason}. Supported: adamw`,
      );
    }
    this.#models.set(modelId, new TrainingModel(this.#base(baseModel), lora, this.#tapeFloats));
  }

  /** Passes of all models run in turn: each needs the memory for its adapter and its longest datum only while it runs. */
  forwardBackward(
    modelId: string,
    data: readonly EngineDatum[],
    loss: LossSource,
    forwardOnly: boolean,
  ): Promise<ForwardBackwardResult> {
    const pass = this.#lastPass.then(() => this.#model(modelId).forwardBackward(data, loss, forwardOnly));
    this.#lastPass = pass.catch(() => undefined);
    return pass;
  }

  optimStep(modelId: string, adam: AdamOptions): { readonly metrics: Record<string, number> } {
    return this.#model(modelId).optimStep(adam);
  }

  exportState(modelId: string, optimizer: boolean): ModelState {
    return this.#model(modelId).exportState(optimizer);
  }

  loadState(modelId: string, state: ModelState, optimizer: boolean): void {
    this.#model(modelId).loadState(state, optimizer);
  }

  createSampler(samplerId: string, source: SamplerSource): void {
    if (this.#samplers.has(samplerId)) throw new EngineUserError(`sampler ${samplerId} exists already`);
    this.#samplers.set(samplerId, this.#sampler(source));
  }

  /** Queues a sample; `cancel` ends it wherever it is. Throws at once if the request is wrong. */
  sample(
    samplerId: string,
    request: SampleRequest,
  ): { readonly result: Promise<SampleResult>; readonly cancel: () => void } {
    const sampler = this.#samplers.get(samplerId);
    if (sampler === undefined) throw new EngineUserError(`there is no sampler ${samplerId}`);
    const queued = this.#pool.add(sampler, checkSample(request, sampler.transformer.base));
    if (!this.#sampling) void this.#decode();
    return queued;
  }

  disposeModel(modelId: string): void {
    this.#models.delete(modelId);
  }

  /** Pending samples still finish. */
  disposeSampler(samplerId: string): void {
    const sampler = this.#samplers.get(samplerId);
    if (sampler !== undefined) this.#pool.forget(sampler);
    this.#samplers.delete(samplerId);
  }

  async #decode(): Promise<void> {
    this.#sampling = true;
    // Requests that arrive in the same turn start together.
    await new Promise<void>((resolve) => setImmediate(resolve));
    while (this.#pool.busy) {
      this.#pool.advance();
      await breathe();
    }
    this.#sampling = false;
  }

  #sampler(source: SamplerSource): Sampler {
    if ('baseModel' in source) return new Sampler(this.#base(source.baseModel));
    if ('modelId' in source) {
      const model = this.#model(source.modelId);
      return new Sampler(model.transformer, { layout: model.layout, weights: model.copyWeights() });
    }
    const { baseModel, lora, weights } = source.state;
    const transformer = this.#base(baseModel);
    const layout = adapterLayout(transformer.base.shape, resolveLora(lora));
    return new Sampler(transformer, { layout, weights: fromNamedTensors(layout, weights) });
  }

  #base(name: string): Transformer {
    const base = this.#bases.get(name);
    if (base !== undefined) return base;
    throw new EngineUserError(
      `there is no base model ${JSON.stringify(name)} here. Known: ${[...this.#bases.keys()].join(', ')}`,
    );
  }

  #model(modelId: string): TrainingModel {
    const model = this.#models.get(modelId);
    if (model === undefined) throw new EngineUserError(`there is no model ${modelId}`);
    return model;
  }
}
