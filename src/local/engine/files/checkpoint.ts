import { LORA_ALPHA } from '../model/adapter.js';
import { EngineUserError } from '../errors.js';
import { decodeSafetensors, encodeSafetensors } from './safetensors.js';
import { LAYER_LINEARS } from '../model/shapes.js';
import type { ModelState, NamedTensor, ResolvedLora } from '../types.js';
import { parseJson } from '../../../support/parseJson.js';

const FORMAT = 'tinker-rx-state';
const [MOMENT_1, MOMENT_2] = ['adam.m.', 'adam.v.'] as const;

/**
 * A state as one safetensors file: float32, so that nothing is lost; base model, LoRA options and step stand in its
 * metadata. {@link decodeState} gives the same state back, bit for bit.
 */
export function encodeState(state: ModelState): Uint8Array<ArrayBuffer> {
  const named = (prefix: string, tensors: Readonly<Record<string, NamedTensor>> = {}) =>
    Object.entries(tensors).map(([name, tensor]) => [prefix + name, tensor] as const);
  const tensors = Object.fromEntries([
    ...named('', state.weights),
    ...named(MOMENT_1, state.optimizer?.m),
    ...named(MOMENT_2, state.optimizer?.v),
  ]);
  const { baseModel, lora, step } = state;
  const metadata = { format: FORMAT, base_model: baseModel, lora: JSON.stringify(lora), step: String(step) };
  return encodeSafetensors(tensors, { metadata });
}

/** Reads a state back. A file that is damaged or something else is a user error that says so. */
export function decodeState(file: Uint8Array): ModelState {
  const { tensors, metadata } = read(file);
  const { base_model: baseModel, step } = metadata;
  const lora = parseLora(metadata['lora']);
  if (
    metadata['format'] !== FORMAT ||
    baseModel === undefined ||
    lora === undefined ||
    !/^\d{1,15}$/.test(step ?? '')
  ) {
    throw new EngineUserError('this safetensors file is not a training state');
  }
  const parts: Record<'weights' | 'm' | 'v', Record<string, NamedTensor>> = { weights: {}, m: {}, v: {} };
  for (const [name, tensor] of Object.entries(tensors)) {
    if (name.startsWith(MOMENT_1)) parts.m[name.slice(MOMENT_1.length)] = tensor;
    else if (name.startsWith(MOMENT_2)) parts.v[name.slice(MOMENT_2.length)] = tensor;
    else parts.weights[name] = tensor;
  }
  const { weights, m, v } = parts;
  const state = { baseModel, lora, step: Number(step), weights };
  return Object.keys(m).length > 0 ? { ...state, optimizer: { m, v } } : state;
}

function parseLora(text: string | undefined): ResolvedLora | undefined {
  const lora = parseJson(text ?? '') as Partial<ResolvedLora> | null | undefined;
  const fits =
    Number.isSafeInteger(lora?.rank) &&
    Number.isSafeInteger(lora?.seed ?? 0) &&
    [lora?.trainAttn, lora?.trainMlp, lora?.trainUnembed].every((flag = true) => typeof flag === 'boolean');
  return fits ? (lora as ResolvedLora) : undefined;
}

function read(file: Uint8Array): ReturnType<typeof decodeSafetensors> {
  try {
    return decodeSafetensors(file);
  } catch (cause) {
    throw new EngineUserError('the checkpoint cannot be read', { cause });
  }
}

/** The adapter as Hugging Face PEFT lays it out, by file name. The weights are named that way already. */
export function exportPeft(
  state: ModelState,
): Readonly<Record<'adapter_model.safetensors' | 'adapter_config.json', Uint8Array>> {
  const { lora, baseModel, weights } = state;
  const trained = { attn: lora.trainAttn, mlp: lora.trainMlp };
  const modules = LAYER_LINEARS.filter(({ group }) => trained[group]).map(({ name }) => name.split('.')[1]!);
  const config = {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: baseModel,
    r: lora.rank,
    lora_alpha: LORA_ALPHA,
    lora_dropout: 0,
    target_modules: lora.trainUnembed ? [...modules, 'lm_head'] : modules,
    bias: 'none',
    fan_in_fan_out: false,
    modules_to_save: null,
    use_rslora: false,
    inference_mode: true,
  };
  return {
    'adapter_model.safetensors': encodeSafetensors(weights, { metadata: { format: 'pt' } }),
    'adapter_config.json': new TextEncoder().encode(`${JSON.stringify(config, undefined, 2)}\n`),
  };
}
