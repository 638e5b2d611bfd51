import { ValidationError } from '../wire/tinkerError.js';
import type { LoraModule } from './loraModules.js';
import type { ModelFamily } from './modelFamily.js';

/** What the adapter is to be loaded by. */
export const SERVERS = ['vllm', 'sglang', 'peft'] as const;
/** A server, or PEFT itself. */
export type Server = (typeof SERVERS)[number];

const MERGE = 'Merge it into the base model instead: tinker-rx checkpoint merge CHECKPOINT --output FOLDER.';

interface ServedFamily {
  readonly name: string;
  /** `model_type` of its configuration, and its repositories on the hub. */
  readonly type: RegExp;
  readonly repository: RegExp;
  /** The first vLLM that loads a trained output matrix; undefined if none is known to. */
  readonly outputSince?: string;
  /** Neither vLLM nor SGLang serves its adapters. */
  readonly withoutAdapters?: true;
}

/**
 * Which vLLM loads an adapter of the output matrix is read from its source: `embedding_modules` of the model has an `lm_head`. Looked at up to
 * 0.28.0rc2 and the main branch of August 2026 (pull requests 29816 and 48850).
 */
const FAMILIES: readonly ServedFamily[] = [
  { name: 'DeepSeek V3', type: /^deepseek_v3$/, repository: /deepseek-v3/i, withoutAdapters: true },
  { name: 'Kimi K2.5 and K2.6', type: /^kimi_k25$/, repository: /kimi-k2\.[56]/i, withoutAdapters: true },
  { name: 'Qwen3.5', type: /^qwen3_5/, repository: /qwen3\.5/i, outputSince: '0.29.0' },
  { name: 'Qwen3 VL', type: /^qwen3_vl/, repository: /qwen3-vl/i },
  { name: 'Qwen3', type: /^qwen3(_moe)?$/, repository: /qwen3-/i, outputSince: '0.16.0' },
  { name: 'Llama', type: /^llama$/, repository: /llama/i, outputSince: '0.16.0' },
  { name: 'Nemotron', type: /^nemotron_h$/, repository: /nemotron/i, outputSince: '0.16.0' },
  { name: 'gpt-oss', type: /^gpt_oss$/, repository: /gpt-oss/i },
];

/**
 * Refuses an adapter that the server could not load, with what to do; gives what else there is to know.
 *
 * @throws ValidationError
 */
export function checkServable(
  server: Server,
  { modelType }: ModelFamily,
  modules: readonly LoraModule[],
): readonly string[] {
  if (server === 'peft') return [];
  const name = server === 'vllm' ? 'vLLM' : 'SGLang';
  const family = FAMILIES.find(({ type }) => type.test(modelType));
  if (family?.withoutAdapters === true)
    throw new ValidationError(`${name} serves no adapters of ${family.name}\n${MERGE}`);
  const unembed = modules.some(({ module }) => /(^|\.)(unembed_tokens|lm_head)$/.test(module));
  const rank = Math.max(...modules.map((module) => module.rank));
  return [
    ...(unembed && server === 'vllm' ? [`Warning: ${outputNote(family?.name ?? modelType, family?.outputSince)}`] : []),
    ...(server === 'vllm' && rank > 16 ? [`vLLM needs --max-lora-rank ${rankOption(rank)} for this adapter.`] : []),
    ...(modules.some(({ module }) => module.includes('.experts'))
      ? [
          server === 'vllm'
            ? 'Adapters of experts are experimental in vLLM: they need all three projections.'
            : 'SGLang may not serve adapters of experts yet: try it, or merge.',
        ]
      : []),
  ];
}

/** What to know before training a model whose adapter servers may not load; undefined if there is nothing. */
export function servingHint(baseModel: string, trainsOutput: boolean): string | undefined {
  const family = FAMILIES.find(({ repository }) => repository.test(baseModel));
  if (family === undefined) return undefined;
  if (family.withoutAdapters === true)
    return `vLLM and SGLang serve no adapters of ${family.name}: to serve the result, merge it with checkpoint merge.`;
  if (!trainsOutput || family.outputSince === '0.16.0') return undefined;
  return `${outputNote(family.name, family.outputSince)} --no-train-unembed leaves the output matrix as it is.`;
}

const outputNote = (name: string, since: string | undefined): string =>
  since === undefined
    ? `no vLLM is known to load a trained output matrix of ${name}. For vLLM, merge the checkpoint, or train without the output matrix.`
    : `vLLM loads a trained output matrix of ${name} from version ${since} on. For an older one, merge the checkpoint, or train without the output matrix.`;

/** vLLM takes these ranks only. */
const RANKS = [8, 16, 32, 64, 128, 256, 320, 512];
const rankOption = (rank: number): number => RANKS.find((one) => one >= rank) ?? rank;
