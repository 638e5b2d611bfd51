import { ValidationError } from '../wire/tinkerError.js';
import type { LoraModule } from './loraModules.js';
import type { ModelFamily } from './modelFamily.js';

/** What the adapter is to be loaded by. */
export const SERVERS = ['vllm', 'sglang', 'peft'] as const;
/** A server, or PEFT itself. */
export type Server = (typeof SERVERS)[number];

const MERGE = 'Merge it into the base model instead: tinker-rx checkpoint merge CHECKPOINT --output FOLDER.';

/** Families whose adapters neither vLLM nor SGLang serves. */
const WITHOUT_ADAPTERS: Readonly<Record<string, string>> = {
  deepseek_v3: 'DeepSeek V3',
  kimi_k25: 'Kimi K2.5 and K2.6',
};

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
  const family = WITHOUT_ADAPTERS[modelType];
  if (family !== undefined) throw new ValidationError(`${name} serves no adapters of ${family}\n${MERGE}`);
  const unembed = modules.some(({ module }) => /(^|\.)(unembed_tokens|lm_head)$/.test(module));
  if (unembed && server === 'vllm')
    throw new ValidationError(
      'vLLM does not serve an adapter of the output matrix, and this checkpoint trained it\n' +
        `Train with trainUnembed: false to serve adapters there. For this checkpoint: ${MERGE} Or write it for another server: --for sglang, --for peft.`,
    );
  const rank = Math.max(...modules.map((module) => module.rank));
  return [
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

/** vLLM takes these ranks only. */
const RANKS = [8, 16, 32, 64, 128, 256, 320, 512];
const rankOption = (rank: number): number => RANKS.find((one) => one >= rank) ?? rank;
