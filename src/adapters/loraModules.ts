import type { SafetensorsHeader, TensorPlace } from '../support/files/safetensors.js';
import { ValidationError } from '../wire/tinkerError.js';

/** One adapted module of an adapter file: its two factors, A [rank, inputs] and B [outputs, rank], or those of all experts. */
export interface LoraModule {
  /** The service's name, without `base_model.model.`. */
  readonly module: string;
  readonly a: TensorPlace;
  readonly b: TensorPlace;
  readonly rank: number;
  readonly inputs: number;
  readonly outputs: number;
  /** How many experts the module stands for; undefined for a module that is not of all experts. */
  readonly experts: number | undefined;
}

const PREFIX = 'base_model.model.';
const FACTOR_A = '.lora_A.weight';
const FACTOR_B = '.lora_B.weight';

/** Pairs the factors of an adapter. Empty placeholders are left out. @throws ValidationError for what is not a LoRA adapter */
export function loraModules({ tensors }: SafetensorsHeader): readonly LoraModule[] {
  const modules: LoraModule[] = [];
  for (const [name, a] of tensors) {
    if (name.endsWith(FACTOR_B) && tensors.has(`${name.slice(0, -FACTOR_B.length)}${FACTOR_A}`)) continue;
    const b = tensors.get(`${name.slice(0, -FACTOR_A.length)}${FACTOR_B}`);
    if (!name.endsWith(FACTOR_A) || b === undefined)
      throw new ValidationError(`The adapter has a tensor that is not part of a LoRA pair: ${name}`);
    if (a.start === a.end && b.start === b.end) continue;
    const stem = name.slice(0, -FACTOR_A.length);
    modules.push(checked(stem.startsWith(PREFIX) ? stem.slice(PREFIX.length) : stem, a, b));
  }
  if (modules.length === 0) throw new ValidationError('The adapter has no LoRA weights');
  return modules;
}

function checked(module: string, a: TensorPlace, b: TensorPlace): LoraModule {
  const wrong = () =>
    new ValidationError(`${module} has factors of shapes [${a.shape.join()}] and [${b.shape.join()}]`);
  const dimensions = a.shape.length;
  if (b.shape.length !== dimensions || (dimensions !== 2 && dimensions !== 3)) throw wrong();
  const [rank, inputs] = a.shape.slice(-2) as [number, number];
  const [outputs, rankOfB] = b.shape.slice(-2) as [number, number];
  if (rank !== rankOfB) throw wrong();
  if (dimensions === 2) return { module, a, b, rank, inputs, outputs, experts: undefined };
  const experts = Math.max(a.shape[0]!, b.shape[0]!);
  const fits = (count: number) => count === experts || count === 1;
  if (!fits(a.shape[0]!) || !fits(b.shape[0]!)) throw wrong();
  return { module, a, b, rank, inputs, outputs, experts };
}

/** The part of a factor that belongs to one expert. */
export function expertPart(place: TensorPlace, expert: number): TensorPlace {
  const [count, ...shape] = place.shape as [number, ...number[]];
  const bytes = (place.end - place.start) / count;
  const start = place.start + (count === 1 ? 0 : expert * bytes);
  return { dtype: place.dtype, shape, start, end: start + bytes };
}
