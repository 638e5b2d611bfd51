import { ValidationError } from '../wire/tinkerError.js';
import { expertPart, type LoraModule } from './loraModules.js';
import type { ModelFamily } from './modelFamily.js';
import { expertName, joinedName, leafOf } from './moduleNames.js';
import type { TensorPlace } from '../support/files/safetensors.js';

/** What is added to a tensor of the base model: the product of two factors, at one place of it. */
export interface Addition {
  /** [rank, inputs]. */
  readonly a: TensorPlace;
  /** [outputs, rank]. */
  readonly b: TensorPlace;
  /** First index of a tensor that holds all experts. */
  readonly expert: number;
  /** The tensor's rows are inputs and its columns outputs, the other way round than in a linear layer. */
  readonly rowsAreInputs: boolean;
  /** Where the first output is, and how far apart the outputs are. */
  readonly offset: number;
  readonly stride: number;
}

/** What is added to each tensor of a base model, by the tensor's name. */
export type MergePlan = ReadonlyMap<string, readonly Addition[]>;

type Add = (target: string, addition: Addition, lora: LoraModule, isPart?: boolean) => void;
type Shapes = (name: string) => readonly number[] | undefined;

/** Plans a merge, and checks every shape before anything is written. @throws ValidationError if the adapter does not fit the model */
export function planMerge(modules: readonly LoraModule[], family: ModelFamily, shapeOf: Shapes): MergePlan {
  const plan = new Map<string, Addition[]>();
  const add: Add = (target, addition, lora, isPart = false) => {
    check(target, addition, lora, shapeOf(target), isPart);
    plan.set(target, [...(plan.get(target) ?? []), addition]);
  };
  for (const lora of modules) {
    const module = family.baseName(lora.module);
    const simple = { a: lora.a, b: lora.b, expert: 0, rowsAreInputs: false, offset: 0, stride: 1 };
    if (lora.experts !== undefined) addExperts(lora, module, family, shapeOf, add);
    else if (module === family.head && family.tiedHead) add(`${family.head}.weight`, simple, lora);
    else {
      const whole = joinedName(module, family);
      const isJoined = whole !== undefined && shapeOf(`${whole}.weight`) !== undefined;
      const offset = isJoined ? rowsBefore(lora, leafOf(whole), modules, family) : 0;
      add(`${isJoined ? whole : module}.weight`, { ...simple, offset }, lora, isJoined);
    }
  }
  return plan;
}

/** Rows of the parts that come before this one in the module that they are joined in. */
function rowsBefore(lora: LoraModule, whole: string, modules: readonly LoraModule[], { joined }: ModelFamily): number {
  const order = joined[whole]!;
  const leaf = leafOf(lora.module);
  const stem = lora.module.slice(0, -leaf.length);
  return order.slice(0, order.indexOf(leaf)).reduce((rows, name) => {
    const before = modules.find(({ module }) => module === `${stem}${name}`);
    if (before === undefined)
      throw new ValidationError(`${stem}${whole} needs ${order.join(', ')}, and the adapter lacks ${name}`);
    return rows + before.outputs;
  }, 0);
}

function addExperts(lora: LoraModule, module: string, family: ModelFamily, shapeOf: Shapes, add: Add): void {
  const factors = (expert: number) => ({ a: expertPart(lora.a, expert), b: expertPart(lora.b, expert) });
  const experts = Array.from({ length: lora.experts! }, (_, expert) => expert);
  const first = `${expertName(module, 0, family)}.weight`;
  if (shapeOf(first) !== undefined) {
    for (const expert of experts) {
      const simple = { ...factors(expert), expert: 0, rowsAreInputs: false, offset: 0, stride: 1 };
      add(`${expertName(module, expert, family)}.weight`, simple, lora);
    }
    return;
  }
  const leaf = leafOf(module);
  const name = family.expertNames[leaf] ?? leaf;
  const stem = module.slice(0, -leaf.length);
  const isHalf = name !== 'down_proj';
  const target = `${stem}${isHalf ? 'gate_up_proj' : name}`;
  const shape = shapeOf(target);
  if (shape?.length !== 3)
    throw new ValidationError(
      `The base model has neither ${first} nor ${target}\nA quantized release names them otherwise. Use one that is not quantized.`,
    );
  const rowsAreInputs = orientation(shape, lora, isHalf, family.experts.rowsAreInputs);
  const interleaved = isHalf && family.experts.interleaved;
  const isUp = name === 'up_proj';
  const offset = !isUp ? 0 : interleaved ? 1 : lora.outputs;
  for (const expert of experts)
    add(target, { ...factors(expert), expert, rowsAreInputs, offset, stride: interleaved ? 2 : 1 }, lora, isHalf);
}

/** Whether the rows of the tensor are inputs: as the shapes say, and as the family has it where they say nothing. */
function orientation(
  [, rows, columns]: readonly number[],
  { inputs, outputs }: LoraModule,
  isHalf: boolean,
  usual: boolean,
): boolean {
  const wide = isHalf ? 2 * outputs : outputs;
  const fits = (rowsAreInputs: boolean) =>
    rowsAreInputs ? rows === inputs && columns === wide : rows === wide && columns === inputs;
  return fits(usual) ? usual : !usual;
}

function check(
  target: string,
  { rowsAreInputs, offset, stride, expert }: Addition,
  lora: LoraModule,
  shape: readonly number[] | undefined,
  isPart: boolean,
): void {
  if (shape === undefined)
    throw new ValidationError(
      `The base model has no ${target}, which the adapter changes\nIs it the model that the checkpoint was trained from, and not quantized?`,
    );
  const [rows, columns] = shape.slice(-2) as [number, number];
  const [inputs, outputs] = rowsAreInputs ? [rows, columns] : [columns, rows];
  const needed = offset + (lora.outputs - 1) * stride + 1;
  const fits = inputs === lora.inputs && (isPart ? outputs >= needed : outputs === needed);
  if (!fits || (shape.length === 3 && expert >= shape[0]!))
    throw new ValidationError(
      `${lora.module} changes ${lora.outputs} by ${lora.inputs}, and ${target} of the base model is ${shape.join(' by ')}`,
    );
}
