import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ValidationError } from '../wire/tinkerError.js';
import { openBaseModel, openWeights, type BaseModel } from './baseModel.js';
import { loraModules } from './loraModules.js';
import { modelFamily } from './modelFamily.js';
import { planPeft, type PeftPlan } from './planPeft.js';
import { checkServable, type Server } from './servers.js';
import { writeSafetensors } from '../support/files/writeSafetensors.js';

const WEIGHTS = 'adapter_model.safetensors';
const CONFIG = 'adapter_config.json';

/** What {@link exportPeft} reads and writes. */
export interface ExportPeftOptions {
  /** Folder of the adapter as the service exports it. */
  readonly adapter: string;
  /** Folder to make. It appears when it is complete. */
  readonly output: string;
  /** What will load the adapter. */
  readonly server: Server;
  /** Folder or repository of the base model. */
  readonly base: string;
  /** What to write as the name of the base model. Default `base`. */
  readonly baseName?: string;
}

/** An adapter that {@link exportPeft} wrote. */
export interface ExportedPeft {
  /** Size of its weights. */
  readonly bytes: number;
  /** Last parts of the names of adapted modules. */
  readonly targetModules: readonly string[];
  /** Rank of the LoRA factors. */
  readonly rank: number;
  /** What to know before serving it, a sentence each. */
  readonly notes: readonly string[];
}

/** Writes a PEFT adapter from one that the service exported. Tensors are copied piece by piece, bit for bit. */
export async function exportPeft({
  adapter,
  output,
  server,
  base,
  baseName = base,
}: ExportPeftOptions): Promise<ExportedPeft> {
  const settings = await readAdapterConfig(adapter);
  const model = await openBaseModel(base);
  const family = modelFamily(model);
  const file = await openWeights(join(adapter, WEIGHTS));
  const partial = `${output}.partial`;
  try {
    const modules = loraModules(file.header);
    const notes = checkServable(server, family, modules);
    const rows = family.servedJoined ? await rowsOf(model) : new Map<string, number>();
    const outputsOf = (module: string) => rows.get(family.baseName(module)) ?? fail(`The base model has no ${module}`);
    const plan = planPeft(file, modules, family, outputsOf);
    await rm(partial, { recursive: true, force: true });
    await mkdir(partial, { recursive: true });
    const bytes = await writeSafetensors(join(partial, WEIGHTS), plan.tensors, { format: 'pt' });
    await writeFile(join(partial, CONFIG), `${JSON.stringify(peftConfig(settings, baseName, plan), undefined, 2)}\n`);
    await rename(partial, output);
    return { bytes, targetModules: plan.targetModules, rank: settings.r, notes };
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    throw error;
  } finally {
    await file.close();
  }
}

export interface AdapterConfig {
  readonly r: number;
  readonly lora_alpha: number;
  readonly base_model_name_or_path?: string;
}

/** The configuration of an adapter. @throws ValidationError for a folder that holds no adapter, or one of a kind that cannot be read */
export async function readAdapterConfig(folder: string): Promise<AdapterConfig> {
  if (!existsSync(join(folder, CONFIG)) || !existsSync(join(folder, WEIGHTS)))
    throw new ValidationError(
      `The checkpoint does not contain a PEFT adapter\nExpected ${CONFIG} and ${WEIGHTS}. Encrypted (.age) weights have to be decrypted first.`,
    );
  const settings = JSON.parse(await readFile(join(folder, CONFIG), 'utf8')) as Record<string, unknown>;
  for (const key of ['r', 'lora_alpha'])
    if (!(Number(settings[key]) > 0)) throw new ValidationError(`${CONFIG} has no ${key}`);
  for (const key of ['use_dora', 'use_rslora', 'fan_in_fan_out'])
    if (settings[key] === true) throw new ValidationError(`${CONFIG} says ${key}, which is not supported`);
  return settings as unknown as AdapterConfig;
}

/** The configuration that PEFT, vLLM and SGLang read. Modules of another rank keep their scale. */
function peftConfig({ r, lora_alpha: alpha }: AdapterConfig, base: string, { targetModules, ranks }: PeftPlan): object {
  return {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: base,
    r,
    lora_alpha: alpha,
    rank_pattern: ranks,
    alpha_pattern: Object.fromEntries(Object.entries(ranks).map(([name, rank]) => [name, (alpha * rank) / r])),
    target_modules: targetModules,
    modules_to_save: null,
    bias: 'none',
    lora_dropout: 0,
    fan_in_fan_out: false,
    init_lora_weights: true,
    use_dora: false,
    use_rslora: false,
    inference_mode: true,
  };
}

/** Rows of every matrix of the base model, by module. */
async function rowsOf({ shards, header }: BaseModel): Promise<ReadonlyMap<string, number>> {
  const rows = new Map<string, number>();
  for (const shard of shards)
    for (const [name, { shape }] of (await header(shard)).tensors)
      rows.set(name.replace(/\.weight$/, ''), shape[0] ?? 0);
  return rows;
}

function fail(message: string): never {
  throw new ValidationError(message);
}
