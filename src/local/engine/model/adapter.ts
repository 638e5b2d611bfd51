import { EngineUserError } from '../errors.js';
import { createRandom } from '../numeric/random.js';
import { linearShapes, type ModelShape } from './shapes.js';
import type { LoraOptions, NamedTensor, ResolvedLora } from '../types.js';

/** The hosted service's scaling: alpha is 32 whatever the rank. */
export const LORA_ALPHA = 32;
const MAX_RANK = 256;

/** Where one adapted matrix keeps its two factors in the flat weights: A [rank, inputs], B [outputs, rank]. */
export interface AdapterSlot {
  /** Index into the model's linears. */
  readonly linear: number;
  readonly name: string;
  readonly inputs: number;
  readonly outputs: number;
  readonly a: number;
  readonly b: number;
}

/** Which matrices an adapter changes and where their factors are. */
export interface AdapterLayout {
  readonly shape: ModelShape;
  readonly lora: ResolvedLora;
  readonly scale: number;
  readonly slots: readonly AdapterSlot[];
  /** Number of weights. */
  readonly size: number;
}

/** Fills in the defaults. A rank out of range, or nothing to train, is a user error. */
export function resolveLora(lora: LoraOptions): ResolvedLora {
  const { rank, seed = 0, trainAttn = true, trainMlp = true, trainUnembed = true } = lora;
  if (!Number.isInteger(rank) || rank < 1 || rank > MAX_RANK) {
    throw new EngineUserError(`lora rank must be an integer from 1 to ${MAX_RANK}, got ${rank}`);
  }
  if (!Number.isSafeInteger(seed)) throw new EngineUserError(`lora seed must be an integer, got ${seed}`);
  if (!trainAttn && !trainMlp && !trainUnembed) {
    throw new EngineUserError('at least one of train_attn, train_mlp and train_unembed must be true');
  }
  return { rank, seed, trainAttn, trainMlp, trainUnembed };
}

export function adapterLayout(shape: ModelShape, lora: ResolvedLora): AdapterLayout {
  const trained = { attn: lora.trainAttn, mlp: lora.trainMlp, unembed: lora.trainUnembed };
  const slots: AdapterSlot[] = [];
  let size = 0;
  linearShapes(shape).forEach(({ name, group, inputs, outputs }, linear) => {
    if (!trained[group]) return;
    const a = size;
    const b = a + lora.rank * inputs;
    size = b + outputs * lora.rank;
    slots.push({ linear, name, inputs, outputs, a, b });
  });
  return { shape, lora, scale: LORA_ALPHA / lora.rank, slots, size };
}

/** Fresh weights: A uniform in ±1/√inputs (as PEFT's Kaiming default), B zero, so that the adapter changes nothing. */
export function initialWeights(layout: AdapterLayout): Float32Array {
  const weights = new Float32Array(layout.size);
  for (const { linear, inputs, a } of layout.slots) {
    const random = createRandom(layout.lora.seed, linear);
    const bound = 1 / Math.sqrt(inputs);
    for (let i = 0; i < layout.lora.rank * inputs; i++) weights[a + i] = bound * (2 * random.uniform() - 1);
  }
  return weights;
}

const tensorNames = ({ name }: AdapterSlot) =>
  [`base_model.model.${name}.lora_A.weight`, `base_model.model.${name}.lora_B.weight`] as const;

/** The flat weights (or moments) as PEFT names them; each tensor is a copy. */
export function toNamedTensors(layout: AdapterLayout, flat: Float32Array): Record<string, NamedTensor> {
  const { rank } = layout.lora;
  const tensors: Record<string, NamedTensor> = {};
  for (const slot of layout.slots) {
    const [a, b] = tensorNames(slot);
    tensors[a] = { shape: [rank, slot.inputs], data: flat.slice(slot.a, slot.b) };
    tensors[b] = { shape: [slot.outputs, rank], data: flat.slice(slot.b, slot.b + slot.outputs * rank) };
  }
  return tensors;
}

/** The other way. A missing, extra or misshapen tensor is a user error that names it. */
export function fromNamedTensors(layout: AdapterLayout, tensors: Readonly<Record<string, NamedTensor>>): Float32Array {
  const { rank } = layout.lora;
  const flat = new Float32Array(layout.size);
  const expected = new Map<string, { readonly shape: readonly number[]; readonly offset: number }>();
  for (const slot of layout.slots) {
    const [a, b] = tensorNames(slot);
    expected.set(a, { shape: [rank, slot.inputs], offset: slot.a });
    expected.set(b, { shape: [slot.outputs, rank], offset: slot.b });
  }
  for (const name of Object.keys(tensors)) {
    if (!expected.has(name)) throw new EngineUserError(`checkpoint has ${name}, which this model does not train`);
  }
  for (const [name, { shape, offset }] of expected) {
    const tensor = tensors[name];
    if (tensor === undefined) throw new EngineUserError(`checkpoint lacks ${name}`);
    if (tensor.shape.join() !== shape.join()) {
      throw new EngineUserError(
        `checkpoint has ${name} as [${tensor.shape.join(', ')}], this model as [${shape.join(', ')}]`,
      );
    }
    flat.set(tensor.data, offset);
  }
  return flat;
}
