import { ropeTable, type RopeTable } from '../numeric/elementwise.js';
import type { Heap } from '../numeric/heap.js';
import { packPanels, panelFloats } from '../numeric/kernels.js';
import { createRandom } from '../numeric/random.js';
import { baseTensors, linearShapes, type LinearShape, type ModelShape } from './shapes.js';
import type { NamedTensor } from '../types.js';

/** A frozen matrix in the heap: as it is, and in panels for the products of both passes. */
export interface BaseLinear extends LinearShape {
  /** Rows of outputs. */
  readonly weight: number;
  /** Wᵀ in panels, for the forward pass. */
  readonly forward: number;
  /** W in panels, for the backward pass. */
  readonly backward: number;
}

/** A base model resident in the heap. */
export interface BaseModel {
  readonly shape: ModelShape;
  readonly embedding: number;
  /** Gains: two a layer, then the last one. */
  readonly norms: readonly number[];
  readonly linears: readonly BaseLinear[];
  readonly rope: RopeTable;
}

/** Where the gradients of the base weights are gathered; only pretraining asks for them. */
export interface BaseGradients {
  readonly embedding: number;
  readonly norms: readonly number[];
  readonly linears: readonly number[];
}

/** Copies the weights into the heap. Throws if a tensor is missing or of another shape. */
export function loadBaseModel(
  heap: Heap,
  shape: ModelShape,
  weights: Readonly<Record<string, NamedTensor>>,
): BaseModel {
  const offsets = new Map<string, number>();
  for (const { name, shape: expected } of baseTensors(shape)) {
    const tensor = weights[name];
    if (tensor === undefined || tensor.shape.join() !== expected.join()) {
      throw new Error(`base weights of ${shape.name}: ${name} should be [${expected.join(', ')}]`);
    }
    offsets.set(name, heap.store(tensor.data));
  }
  const at = (name: string): number => offsets.get(name)!;
  return {
    shape,
    embedding: at('model.embed_tokens.weight'),
    norms: [
      ...Array.from({ length: shape.layers }, (_, layer) => [
        at(`model.layers.${layer}.input_layernorm.weight`),
        at(`model.layers.${layer}.post_attention_layernorm.weight`),
      ]).flat(),
      at('model.norm.weight'),
    ],
    linears: linearShapes(shape).map((linear) => {
      const weight = at(`${linear.name}.weight`);
      const forward = heap.alloc(panelFloats(linear.inputs, linear.outputs));
      const backward = heap.alloc(panelFloats(linear.outputs, linear.inputs));
      const packed = { ...linear, weight, forward, backward };
      packLinear(heap, packed);
      return packed;
    }),
    rope: ropeTable(shape.context, shape.width / shape.heads),
  };
}

/** Makes the panels from the weight, which only pretraining changes. */
export function packLinear({ floats }: Heap, { weight, forward, backward, inputs, outputs }: BaseLinear): void {
  packPanels(floats, weight, inputs, outputs, 1, inputs, forward);
  packPanels(floats, weight, outputs, inputs, inputs, 1, backward);
}

/** Fresh weights: what pretraining starts from, and tests use. */
export function randomBaseWeights(shape: ModelShape, seed: number): Record<string, NamedTensor> {
  const residual = 1 / Math.sqrt(2 * shape.layers);
  return Object.fromEntries(
    baseTensors(shape).map(({ name, shape: dimensions }, index) => {
      const size = dimensions.reduce((a, b) => a * b, 1);
      const data = new Float32Array(size).fill(1);
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
