import { ValidationError } from '../wire/tinkerError.js';
import { joinFactors } from './joinFactors.js';
import { expertPart, type LoraModule } from './loraModules.js';
import type { ModelFamily } from './modelFamily.js';
import { expertName, joinedName, leafOf } from './moduleNames.js';
import type { SafetensorsFile, TensorPlace } from '../support/files/safetensors.js';
import { copyRange, type TensorToWrite } from '../support/files/writeSafetensors.js';

/** What an adapter becomes in PEFT's layout. */
export interface PeftPlan {
  readonly tensors: readonly TensorToWrite[];
  /** Last parts of the names of adapted modules. */
  readonly targetModules: readonly string[];
  /** Ranks that differ from the adapter's, by module. */
  readonly ranks: Readonly<Record<string, number>>;
}

/** Plans a PEFT adapter: names as servers know them, one pair for each expert, and every byte of a factor as it was. */
export function planPeft(
  file: SafetensorsFile,
  modules: readonly LoraModule[],
  family: ModelFamily,
  outputsOf: (module: string) => number,
): PeftPlan {
  const tensors: TensorToWrite[] = [];
  const names = new Set<string>();
  const targets = new Set<string>();
  const ranks: Record<string, number> = {};
  const add = (module: string, a: TensorSource, b: TensorSource) => {
    if (names.has(module)) throw new ValidationError(`Two modules of the adapter become ${module}`);
    names.add(module);
    targets.add(leafOf(module));
    tensors.push({ name: `base_model.model.${module}.lora_A.weight`, ...a });
    tensors.push({ name: `base_model.model.${module}.lora_B.weight`, ...b });
  };
  const copied = (place: TensorPlace): TensorSource => ({
    dtype: place.dtype,
    shape: place.shape,
    byteLength: place.end - place.start,
    bytes: () => copyRange(file, place),
  });
  const joins = new Map<string, LoraModule[]>();
  for (const lora of modules) {
    const module = family.servedName(lora.module);
    const whole = family.servedJoined && lora.experts === undefined ? joinedName(module, family) : undefined;
    if (whole !== undefined) joins.set(whole, [...(joins.get(whole) ?? []), lora]);
    else if (lora.experts === undefined) add(module, copied(lora.a), copied(lora.b));
    else
      for (let expert = 0; expert < lora.experts; expert++)
        add(expertName(module, expert, family), copied(expertPart(lora.a, expert)), copied(expertPart(lora.b, expert)));
  }
  for (const [whole, parts] of joins) {
    const { a, b, rank } = joinFactors(file, whole, parts, family, outputsOf(whole));
    add(whole, a, b);
    ranks[leafOf(whole)] = rank;
  }
  return { tensors, targetModules: [...targets].sort(), ranks };
}

type TensorSource = Omit<TensorToWrite, 'name'>;
