import { LORA_ALPHA } from '../engine/adapter.js';
import { decodeSafetensors, encodeSafetensors } from '../engine/safetensors.js';
import type { ModelState, NamedTensor } from '../engine/types.js';
import type { WeightsInfo } from './manifest.js';

export const ADAPTER_FILE = 'adapter_model.safetensors';
export const ADAPTER_CONFIG_FILE = 'adapter_config.json';
export const OPTIMIZER_FILE = 'optimizer.safetensors';

const FORMAT = { metadata: { format: 'pt' } };
const FIRST_MOMENT = 'adam.m.';
const SECOND_MOMENT = 'adam.v.';

/** The files of a checkpoint by name: the adapter, and the optimizer's moments where the state has them. */
export function filesOfState(state: ModelState): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>([[ADAPTER_FILE, encodeSafetensors(state.weights, FORMAT)]]);
  if (state.optimizer !== undefined) {
    const tensors = { ...prefixed(FIRST_MOMENT, state.optimizer.m), ...prefixed(SECOND_MOMENT, state.optimizer.v) };
    files.set(OPTIMIZER_FILE, encodeSafetensors(tensors, FORMAT));
  }
  return files;
}

/** The inverse of {@link filesOfState}. */
export function stateOfFiles(info: WeightsInfo, files: ReadonlyMap<string, Uint8Array>): ModelState {
  const adapter = files.get(ADAPTER_FILE);
  if (adapter === undefined) throw new RangeError(`a checkpoint without ${ADAPTER_FILE}`);
  const moments = files.get(OPTIMIZER_FILE);
  const tensors = moments === undefined ? undefined : decodeSafetensors(moments).tensors;
  return {
    baseModel: info.baseModel,
    lora: info.lora,
    step: info.step,
    weights: decodeSafetensors(adapter).tensors,
    ...(tensors === undefined
      ? {}
      : { optimizer: { m: withoutPrefix(FIRST_MOMENT, tensors), v: withoutPrefix(SECOND_MOMENT, tensors) } }),
  };
}

type Tensors = Readonly<Record<string, NamedTensor>>;

const prefixed = (prefix: string, tensors: Tensors): Tensors =>
  Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [`${prefix}${name}`, tensor]));

const withoutPrefix = (prefix: string, tensors: Tensors): Tensors =>
  Object.fromEntries(
    Object.entries(tensors)
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, tensor]) => [name.slice(prefix.length), tensor]),
  );

/** An adapter in Hugging Face PEFT layout: its weights and the configuration that names the modules they belong to. */
export function peftFiles(state: ModelState): Map<string, Uint8Array> {
  return new Map<string, Uint8Array>([
    [ADAPTER_FILE, encodeSafetensors(state.weights, FORMAT)],
    [ADAPTER_CONFIG_FILE, Buffer.from(`${JSON.stringify(adapterConfig(state), null, 2)}\n`)],
  ]);
}

function adapterConfig({ baseModel, lora, weights }: ModelState): object {
  const modules = Object.keys(weights).map((name) => /([^.]+)\.lora_[AB]\.weight$/.exec(name)?.[1]);
  return {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: baseModel,
    r: lora.rank,
    lora_alpha: LORA_ALPHA,
    lora_dropout: 0,
    bias: 'none',
    fan_in_fan_out: false,
    inference_mode: true,
    init_lora_weights: true,
    target_modules: [...new Set(modules.filter((module) => module !== undefined))].sort(),
  };
}
