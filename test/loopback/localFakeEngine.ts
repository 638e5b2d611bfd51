import { EngineCancelledError, EngineUserError } from '../../src/local/engine/errors.js';
import type {
  EngineDatum,
  ForwardBackwardResult,
  LossFunction,
  ModelState,
  ResolvedLora,
  SampleRequest,
  SampleResult,
} from '../../src/local/engine/types.js';
import type { EnginePort } from '../../src/local/enginePort.js';

interface FakeModel {
  readonly baseModel: string;
  readonly lora: ResolvedLora;
  step: number;
  gradients: number;
}

/**
 * An engine without numbers, for tests of the protocol: it writes down what it is asked to do and can be held. A
 * model's weight counts its optimizer steps; a sample repeats the weight of its sampler.
 */
export class FakeEngine implements EnginePort {
  readonly baseModels = [
    { name: 'fake/model', contextLength: 64, vocabularySize: 264, parameters: 1, layers: 1, width: 1 },
  ];
  /** @param floats how many numbers a checkpoint holds; all of them are the number of optimizer steps. */
  constructor(private readonly floats = 2) {}

  /** Set it to let the engine look dead. */
  failure: Error | undefined;
  /** Everything that ran, in order: `forward_backward m`, `optim_step m`, `sample s`, … */
  readonly log: string[] = [];
  readonly models = new Map<string, FakeModel>();
  readonly samplers = new Map<string, number>();
  #gate: Promise<void> = Promise.resolve();
  #open = () => undefined as void;

  /** From now on nothing finishes until {@link release}. */
  hold(): void {
    this.#gate = new Promise((resolve) => (this.#open = resolve));
  }

  release(): void {
    this.#open();
    this.#gate = Promise.resolve();
  }

  async createModel(options: Parameters<EnginePort['createModel']>[0]): Promise<void> {
    const { modelId, baseModel, lora, optimizer = 'adamw' } = options;
    await this.#gate;
    if (optimizer !== 'adamw') throw new EngineUserError(`no optimizer ${optimizer}`);
    if (baseModel !== 'fake/model') throw new EngineUserError(`no base model ${baseModel}`);
    this.log.push(`create ${modelId}`);
    this.models.set(modelId, { baseModel, lora: lora as ResolvedLora, step: 0, gradients: 0 });
  }

  async forwardBackward(
    modelId: string,
    data: readonly EngineDatum[],
    loss: string | LossFunction,
    _config: unknown,
    { forwardOnly = false }: { readonly forwardOnly?: boolean } = {},
  ): Promise<ForwardBackwardResult> {
    await this.#gate;
    const model = this.#model(modelId);
    if (typeof loss === 'string' && loss !== 'cross_entropy') throw new EngineUserError(`no loss ${loss}`);
    this.log.push(
      `${forwardOnly ? 'forward' : 'forward_backward'} ${data.map(({ tokens }) => tokens.length).join('+')}`,
    );
    if (!forwardOnly) model.gradients += data.length;
    const outputs = data.map(({ tokens }) => {
      const values = Float32Array.from(tokens, (token) => -token / 100);
      return { logprobs: { dtype: 'float32' as const, data: values, shape: [values.length] } };
    });
    if (typeof loss === 'string') return { outputs, metrics: { 'loss:sum': data.length } };
    const results = await Promise.all(
      data.map(async ({ inputs }, index) => loss(outputs[index]!.logprobs, inputs, index)),
    );
    return { outputs, metrics: { 'loss:sum': results.reduce((sum, result) => sum + result.loss, 0) } };
  }

  async optimStep(modelId: string): Promise<{ readonly metrics: Readonly<Record<string, number>> }> {
    await this.#gate;
    const model = this.#model(modelId);
    model.step++;
    model.gradients = 0;
    this.log.push(`optim_step ${model.step}`);
    return { metrics: { 'unclipped_grad_l2:mean': 1 } };
  }

  async exportState(modelId: string, { optimizer = true }: { readonly optimizer?: boolean } = {}): Promise<ModelState> {
    await this.#gate;
    const { baseModel, lora, step } = this.#model(modelId);
    this.log.push(`export ${step}`);
    const tensor = () => ({
      'model.layers.0.q_proj.lora_A.weight': { shape: [this.floats], data: new Float32Array(this.floats).fill(step) },
    });
    const state = { baseModel, lora, step, weights: tensor() };
    return optimizer ? { ...state, optimizer: { m: tensor(), v: tensor() } } : state;
  }

  async loadState(modelId: string, state: ModelState): Promise<void> {
    await this.#gate;
    this.#model(modelId).step = weightOf(state);
    this.log.push(`load ${weightOf(state)}`);
  }

  async createSampler(options: Parameters<EnginePort['createSampler']>[0]): Promise<void> {
    await this.#gate;
    this.samplers.set(options.samplerId, 'state' in options ? weightOf(options.state) : 0);
    this.log.push(`sampler ${this.samplers.get(options.samplerId)}`);
  }

  async sample(
    samplerId: string,
    { prompt, numSamples = 1, maxTokens = 4, promptLogprobs = false }: SampleRequest,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<SampleResult> {
    const weight = this.samplers.get(samplerId);
    if (weight === undefined) throw new EngineUserError(`no sampler ${samplerId}`);
    await Promise.race([this.#gate, aborted(signal)]);
    if (signal?.aborted === true) {
      this.log.push('cancelled');
      throw new EngineCancelledError('the sample was cancelled');
    }
    this.log.push(`sample ${prompt.length}`);
    const sequence = () => ({
      stopReason: 'length' as const,
      tokens: new Int32Array(maxTokens).fill(weight),
      logprobs: new Float32Array(maxTokens).fill(-0.5),
    });
    return {
      sequences: Array.from({ length: numSamples }, sequence),
      ...(promptLogprobs ? { promptLogprobs: Float32Array.from(prompt, (_, i) => (i === 0 ? NaN : -1)) } : {}),
      promptCacheHitTokens: 0,
    };
  }

  async disposeModel(modelId: string): Promise<void> {
    await this.#gate;
    this.log.push(`dispose ${modelId}`);
    this.models.delete(modelId);
  }

  async disposeSampler(samplerId: string): Promise<void> {
    this.log.push('dispose sampler');
    this.samplers.delete(samplerId);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #model(modelId: string): FakeModel {
    const model = this.models.get(modelId);
    if (model === undefined) throw new EngineUserError(`no model ${modelId}`);
    return model;
  }
}

const weightOf = ({ weights }: ModelState): number => Object.values(weights)[0]!.data[0]!;

const aborted = (signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true }));
