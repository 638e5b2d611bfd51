import type { Heap } from '../numeric/heap.js';
import { createRandom } from '../numeric/random.js';
import { ropeTable } from './ropeTable.js';
import { baseTensors, linearShapes, type LinearShape, type ModelShape } from './shapes.js';
import { BYTE_TOKENS, type TokenTable } from './vocabulary.js';
import type { NamedTensor } from '../types.js';
import type { StoredTensor } from '../../weights/OpenedModel.js';

/** A frozen matrix in the heap, row by row as its file has it. */
export interface Matrix {
  readonly weight: number;
  /** Whether it is bf16, two elements in the place of a float. */
  readonly half: boolean;
}

/** A frozen matrix of the model. */
export interface BaseLinear extends LinearShape, Matrix {
  /** Added to each row of the result, or -1. */
  readonly bias: number;
}

/** A base model resident in the heap. */
export interface BaseModel {
  readonly shape: ModelShape;
  readonly embedding: Matrix;
  /** Gains: two a layer, then the last one. */
  readonly norms: readonly number[];
  /** Gains of the norms of queries and keys, two a layer; none in models without. */
  readonly headNorms: readonly number[];
  readonly linears: readonly BaseLinear[];
  readonly rope: number;
  readonly tokens: TokenTable;
  /** Whether products may round once per step, which is faster and differs in the last bits between releases of Node. */
  readonly fused: boolean;
}

/** Where the gradients of the base weights are gathered; only pretraining asks for them. */
export interface BaseGradients {
  readonly embedding: number;
  readonly norms: readonly number[];
  readonly linears: readonly number[];
}

/** Copies the tensors of a model into the heap, one by one and in any order. */
export class BaseLoader {
  readonly #heap: Heap;
  readonly #shape: ModelShape;
  readonly #expected: ReadonlyMap<string, readonly number[]>;
  readonly #loaded = new Map<string, Matrix>();

  constructor(heap: Heap, shape: ModelShape) {
    this.#heap = heap;
    this.#shape = shape;
    this.#expected = new Map(baseTensors(shape).map((tensor) => [tensor.name, tensor.shape]));
  }

  /** Throws if the model has no such tensor, or one of another shape. Vectors are widened to float32. */
  put(name: string, tensor: NamedTensor | StoredTensor): void {
    const expected = this.#expected.get(name);
    if (expected === undefined || tensor.shape.join() !== expected.join()) throw this.#wrong(name);
    const half = tensor.data instanceof Uint16Array && expected.length === 2;
    const weight = this.#heap.keep(half ? Math.ceil(tensor.data.length / 2) : tensor.data.length);
    if (tensor.data instanceof Float32Array) this.#heap.floats.set(tensor.data, weight);
    else if (half) new Uint16Array(this.#heap.floats.buffer).set(tensor.data, 2 * weight);
    else tensor.data.forEach((value, i) => (this.#heap.integers[weight + i] = value << 16));
    this.#loaded.set(name, { weight, half });
  }

  /** The model, once all tensors are there. */
  finish(tokens: TokenTable, fused: boolean): BaseModel {
    const shape = this.#shape;
    const at = (name: string): Matrix => {
      const found = this.#loaded.get(name);
      if (found === undefined) throw this.#wrong(name);
      return found;
    };
    const perLayer = (...names: readonly string[]): number[] =>
      Array.from({ length: shape.layers }, (_, layer) =>
        names.map((name) => at(`model.layers.${layer}.${name}.weight`).weight),
      ).flat();
    const embedding = at('model.embed_tokens.weight');
    return {
      shape,
      embedding,
      norms: [...perLayer('input_layernorm', 'post_attention_layernorm'), at('model.norm.weight').weight],
      headNorms: shape.queryKeyNorms === true ? perLayer('self_attn.q_norm', 'self_attn.k_norm') : [],
      linears: linearShapes(shape).map((linear) => ({
        ...linear,
        ...(linear.group === 'unembed' && shape.tiedHead === true ? embedding : at(`${linear.name}.weight`)),
        bias: this.#loaded.get(`${linear.name}.bias`)?.weight ?? -1,
      })),
      rope: ropeTable(this.#heap, shape),
      tokens,
      fused,
    };
  }

  #wrong(name: string): Error {
    const { name: model } = this.#shape;
    const expected = this.#expected.get(name);
    return new Error(
      expected === undefined
        ? `base weights of ${model}: ${name} does not belong to it`
        : `base weights of ${model}: ${name} should be [${expected.join(', ')}]`,
    );
  }
}

/** Copies the weights into the heap. Throws if a tensor is missing or of another shape. */
export function loadBaseModel(
  heap: Heap,
  shape: ModelShape,
  weights: Readonly<Record<string, NamedTensor | StoredTensor>>,
  fused = false,
): BaseModel {
  const loader = new BaseLoader(heap, shape);
  for (const { name } of baseTensors(shape)) if (weights[name] !== undefined) loader.put(name, weights[name]);
  return loader.finish(BYTE_TOKENS, fused);
}

/** Fresh weights: what pretraining starts from, and tests use. */
export function randomBaseWeights(shape: ModelShape, seed: number): Record<string, NamedTensor> {
  const residual = 1 / Math.sqrt(2 * shape.layers);
  return Object.fromEntries(
    baseTensors(shape).map(({ name, shape: dimensions }, index) => {
      const size = dimensions.reduce((a, b) => a * b, 1);
      const data = new Float32Array(size).fill(name.endsWith('.bias') ? 0 : 1);
      if (dimensions.length === 2) {
        const random = createRandom(seed, index);
        const last = /o_proj|down_proj/.test(name) ? residual : 1;
        const deviation = name.includes('embed_tokens') ? 0.5 : last / Math.sqrt(dimensions[1]!);
        for (let i = 0; i < size; i++) data[i] = deviation * random.normal();
      }
      return [name, { shape: dimensions, data }];
    }),
  );
}
