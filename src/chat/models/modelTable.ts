import type { ModelFacts } from './modelFacts.js';

const LLAMA3 = ['llama3'] as const;
const ROLE_COLON = ['role_colon'] as const;
const QWEN3 = ['qwen3', 'qwen3_disable_thinking'] as const;
const QWEN3_INSTRUCT = ['qwen3_instruct'] as const;
const QWEN3_VL_INSTRUCT = ['qwen3_vl_instruct'] as const;
const QWEN3_5 = ['qwen3_5', 'qwen3_5_disable_thinking', 'qwen3_5_preserve_thinking'] as const;
// prettier-ignore
const QWEN3_8 = ['qwen3_8_xhigh_reasoning', 'qwen3_8_disable_thinking', 'qwen3_8_medium_reasoning', 'qwen3_8_low_reasoning'] as const;
const DEEPSEEK_V3 = ['deepseekv3', 'deepseekv3_thinking'] as const;
// prettier-ignore
const DEEPSEEK_V4_1 = ['deepseekv4_1', 'deepseekv4_1_low_reasoning', 'deepseekv4_1_max_reasoning', 'deepseekv4_1_disable_thinking', 'deepseekv4_1_preserve_thinking'] as const;
const GPT_OSS = ['gpt_oss_no_sysprompt', 'gpt_oss_medium_reasoning'] as const;
const KIMI_K2 = ['kimi_k2'] as const;
const KIMI_K25 = ['kimi_k25', 'kimi_k25_disable_thinking'] as const;
const KIMI_K26 = ['kimi_k26', 'kimi_k26_disable_thinking', 'kimi_k26_preserve_thinking'] as const;
const GLM5_3 = ['glm5_3_max_reasoning', 'glm5_3_low_reasoning', 'glm5_3_high_reasoning'] as const;
const NEMOTRON3 = ['nemotron3', 'nemotron3_disable_thinking', 'nemotron3_preserve_thinking'] as const;
const NEMOTRON3_SUPER = [...NEMOTRON3, 'nemotron3_low_thinking'] as const;
// prettier-ignore
const NEMOTRON3_LIGHTNING = ['nemotron3_ultra', 'nemotron3_ultra_disable_thinking', 'nemotron3_ultra_preserve_thinking'] as const;
// prettier-ignore
const NEMOTRON3_ULTRA = ['nemotron3_ultra', 'nemotron3_ultra_disable_thinking', 'nemotron3_ultra_medium_thinking', 'nemotron3_ultra_preserve_thinking'] as const;
const TML_V0 = ['tml_v0'] as const;
const BYTES = ['tinker_rx_bytes'] as const;
const SMOLLM2 = ['smollm2'] as const;

const IMAGES = { takesImages: true };
const IMAGES_AND_AUDIO = { takesImages: true, takesAudio: true };

/** A row of the table. */
interface Model {
  /** The renderers made for it, the recommended one first. */
  readonly renderers: readonly [string, ...string[]];
  /** Absent for the models that only the embedded service runs: their sizes are in their own files. */
  readonly facts?: ModelFacts;
}

function model(
  renderers: Model['renderers'],
  hiddenSize: number,
  size: string,
  [mlp, attention, unembedding]: readonly [number, number, number],
  { takesImages = false, takesAudio = false }: { readonly takesImages?: boolean; readonly takesAudio?: boolean } = {},
): Model {
  const loraParameters = { mlp, attention, unembedding };
  // Only models that continue text are written as plain turns.
  const isChat = renderers !== ROLE_COLON;
  return { renderers, facts: { hiddenSize, size, loraParameters, isChat, takesImages, takesAudio } };
}

/**
 * Every model of the public tinker-cookbook, the embedded service's own, and small ones that it loads. Experts share the LoRA factor on the hidden side, which the
 * counts of parameters reflect.
 */
// prettier-ignore
export const MODELS: Readonly<Record<string, Model>> = {
  'meta-llama/Llama-3.1-8B-Instruct': model(LLAMA3, 4096, '8B', [1_769_472, 851_968, 132_352]),
  'meta-llama/Llama-3.2-1B': model(ROLE_COLON, 2048, '1B', [491_520, 212_992, 130_304]),
  'meta-llama/Llama-3.2-3B': model(ROLE_COLON, 3072, '3B', [946_176, 573_440, 131_328]),
  'meta-llama/Llama-3.1-8B': model(ROLE_COLON, 4096, '8B', [1_769_472, 851_968, 132_352]),
  'meta-llama/Llama-3.1-70B': model(ROLE_COLON, 8192, '70B', [8_847_360, 4_096_000, 136_448]),
  'meta-llama/Llama-3.3-70B-Instruct': model(LLAMA3, 8192, '70B', [8_847_360, 4_096_000, 136_448]),
  'Qwen/Qwen3-VL-30B-A3B-Instruct': model(QWEN3_VL_INSTRUCT, 2048, '30B-A3B', [14_450_688, 835_584, 153_984], IMAGES),
  'Qwen/Qwen3-VL-235B-A22B-Instruct': model(QWEN3_VL_INSTRUCT, 4096, '235B-A22B', [56_598_528, 3_176_448, 156_032], IMAGES),
  'Qwen/Qwen3-8B-Base': model(ROLE_COLON, 4096, '8B', [1_769_472, 958_464, 156_032]),
  'Qwen/Qwen3-30B-A3B-Base': model(ROLE_COLON, 2048, '30B-A3B', [14_450_688, 835_584, 153_984]),
  'Qwen/Qwen3-8B': model(QWEN3, 4096, '8B', [1_769_472, 958_464, 156_032]),
  'Qwen/Qwen3-32B': model(QWEN3, 5120, '32B', [5_898_240, 2_490_368, 157_056]),
  'Qwen/Qwen3-30B-A3B': model(QWEN3, 2048, '30B-A3B', [14_450_688, 835_584, 153_984]),
  'Qwen/Qwen3-4B-Instruct-2507': model(QWEN3_INSTRUCT, 2560, '4B', [1_327_104, 737_280, 154_496]),
  'Qwen/Qwen3-30B-A3B-Instruct-2507': model(QWEN3_INSTRUCT, 2048, '30B-A3B', [14_450_688, 835_584, 153_984]),
  'Qwen/Qwen3-235B-A22B-Instruct-2507': model(QWEN3_INSTRUCT, 4096, '235B-A22B', [56_598_528, 3_176_448, 156_032]),
  'Qwen/Qwen3.5-4B': model(QWEN3_5, 2560, '4B', [1_130_496, 897_024, 250_880], IMAGES),
  'Qwen/Qwen3.5-9B': model(QWEN3_5, 4096, '9B', [1_572_864, 1_130_496, 252_416], IMAGES),
  'Qwen/Qwen3.5-9B-Base': model(ROLE_COLON, 4096, '9B', [1_572_864, 1_130_496, 252_416], IMAGES),
  'Qwen/Qwen3.5-27B': model(QWEN3_5, 5120, '27B', [4_325_376, 2_965_504, 253_440], IMAGES),
  'Qwen/Qwen3.5-35B-A3B': model(QWEN3_5, 2048, '35B-A3B', [16_281_600, 1_013_760, 250_368], IMAGES),
  'Qwen/Qwen3.5-35B-A3B-Base': model(ROLE_COLON, 2048, '35B-A3B', [16_281_600, 1_013_760, 250_368], IMAGES),
  'Qwen/Qwen3.5-397B-A17B': model(QWEN3_5, 4096, '397B-A17B', [96_030_720, 2_841_600, 252_416], IMAGES),
  'Qwen/Qwen3.6-27B': model(QWEN3_5, 5120, '27B', [4_325_376, 2_965_504, 253_440], IMAGES),
  'Qwen/Qwen3.6-35B-A3B': model(QWEN3_5, 2048, '35B-A3B', [16_281_600, 1_013_760, 250_368], IMAGES),
  'Qwen/Qwen3.8-27B': model(QWEN3_8, 5120, '27B', [4_325_376, 2_965_504, 253_440], IMAGES),
  'deepseek-ai/DeepSeek-V3.1': model(DEEPSEEK_V3, 7168, '671B-A37B', [94_307_328, 2_440_000, 136_448]),
  'deepseek-ai/DeepSeek-V3.1-Base': model(ROLE_COLON, 7168, '671B-A37B', [94_307_328, 2_440_000, 136_448]),
  'deepseek-ai/DeepSeek-V4.1-Flash': model(DEEPSEEK_V4_1, 5120, '552B-A16B', [107_673_600, 1_013_760, 134_400]),
  'deepseek-ai/DeepSeek-V4.1-Flash-1017': model(DEEPSEEK_V4_1, 5120, '552B-A16B', [107_673_600, 1_013_760, 134_400]),
  'openai/gpt-oss-20b': model(GPT_OSS, 2880, '21B-A3.6B', [6_842_880, 497_664, 203_968]),
  'openai/gpt-oss-120b': model(GPT_OSS, 2880, '117B-A5.1B', [40_124_160, 746_496, 203_968]),
  'moonshotai/Kimi-K2-Thinking': model(KIMI_K2, 7168, '1T-A32B', [144_583_680, 1_940_288, 171_008]),
  'moonshotai/Kimi-K2.5': model(KIMI_K25, 7168, '1T-A32B', [144_583_680, 1_940_288, 171_008], IMAGES),
  'moonshotai/Kimi-K2.6': model(KIMI_K26, 7168, '1T-A32B', [144_583_680, 1_940_288, 171_008], IMAGES),
  'zai-org/GLM-5.3': model(GLM5_3, 6144, '744B-A40B', [121_356_288, 2_920_320, 161_024]),
  'zai-org/GLM-5.3-Flash': model(GLM5_3, 4096, '320B-A18B', [75_755_520, 2_009_088, 158_976]),
  'nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16': model(NEMOTRON3, 2688, '30B-A3B', [11_346_176, 584_832, 133_760]),
  'nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16': model(NEMOTRON3_SUPER, 4096, '120B-A12B', [111_349_760, 1_675_264, 135_168]),
  'nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16': model(NEMOTRON3_ULTRA, 8192, '550B-A55B', [254_529_536, 4_134_912, 139_264]),
  'nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16': model(NEMOTRON3_LIGHTNING, 2688, '30B-A3B', [11_346_176, 584_832, 133_760]),
  'nvidia/NVIDIA-Nemotron-3.5-Super-VL-120B-A12B-BF16': model(NEMOTRON3_ULTRA, 4096, '120B-A12B', [111_349_760, 1_675_264, 135_168], IMAGES),
  'thinkingmachines/Inkling': model(TML_V0, 6144, '975B-A41B', [154_705_920, 3_424_256, 207_168], IMAGES_AND_AUDIO),
  'thinkingmachines/Inkling-Small': model(TML_V0, 4096, '276B-A12B', [64_503_808, 1_311_744, 205_120], IMAGES_AND_AUDIO),
  'tinker-rx/tiny': { renderers: BYTES },
  'tinker-rx/small': { renderers: BYTES },
  'HuggingFaceTB/SmolLM2-135M-Instruct': { renderers: SMOLLM2 },
  'HuggingFaceTB/SmolLM2-360M-Instruct': { renderers: SMOLLM2 },
  'HuggingFaceTB/SmolLM2-1.7B-Instruct': { renderers: SMOLLM2 },
  'Qwen/Qwen3-0.6B': { renderers: QWEN3 },
  'Qwen/Qwen3-1.7B': { renderers: QWEN3 },
  'meta-llama/Llama-3.2-1B-Instruct': { renderers: LLAMA3 },
};

/** A model of the table; a `:checkpoint` suffix is ignored. */
export function findModel(name: string): Model | undefined {
  const plain = name.split(':', 1)[0]!;
  return Object.hasOwn(MODELS, plain) ? MODELS[plain] : undefined;
}
