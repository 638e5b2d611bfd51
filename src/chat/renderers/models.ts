const LLAMA3 = ['llama3'] as const;
const ROLE_COLON = ['role_colon'] as const;
const QWEN3 = ['qwen3', 'qwen3_disable_thinking'] as const;
const QWEN3_INSTRUCT = ['qwen3_instruct'] as const;
const QWEN3_VL_INSTRUCT = ['qwen3_vl_instruct'] as const;
const QWEN3_5 = ['qwen3_5', 'qwen3_5_disable_thinking', 'qwen3_5_preserve_thinking'] as const;
const QWEN3_8 = [
  'qwen3_8_xhigh_reasoning',
  'qwen3_8_disable_thinking',
  'qwen3_8_medium_reasoning',
  'qwen3_8_low_reasoning',
] as const;
const DEEPSEEK_V3 = ['deepseekv3', 'deepseekv3_thinking'] as const;
const DEEPSEEK_V4_1 = [
  'deepseekv4_1',
  'deepseekv4_1_low_reasoning',
  'deepseekv4_1_max_reasoning',
  'deepseekv4_1_disable_thinking',
  'deepseekv4_1_preserve_thinking',
] as const;
const GPT_OSS = ['gpt_oss_no_sysprompt', 'gpt_oss_medium_reasoning'] as const;
const KIMI_K2 = ['kimi_k2'] as const;
const KIMI_K25 = ['kimi_k25', 'kimi_k25_disable_thinking'] as const;
const KIMI_K26 = ['kimi_k26', 'kimi_k26_disable_thinking', 'kimi_k26_preserve_thinking'] as const;
const GLM5_3 = ['glm5_3_max_reasoning', 'glm5_3_low_reasoning', 'glm5_3_high_reasoning'] as const;
const NEMOTRON3 = ['nemotron3', 'nemotron3_disable_thinking', 'nemotron3_preserve_thinking'] as const;
const NEMOTRON3_SUPER = [...NEMOTRON3, 'nemotron3_low_thinking'] as const;
const NEMOTRON3_LIGHTNING = [
  'nemotron3_ultra',
  'nemotron3_ultra_disable_thinking',
  'nemotron3_ultra_preserve_thinking',
] as const;
const NEMOTRON3_ULTRA = [
  'nemotron3_ultra',
  'nemotron3_ultra_disable_thinking',
  'nemotron3_ultra_medium_thinking',
  'nemotron3_ultra_preserve_thinking',
] as const;
const TML_V0 = ['tml_v0'] as const;
const BYTES = ['tinker_rx_bytes'] as const;

/** Every model of the public cookbook → the renderers made for it, the recommended one first; and the embedded service's own models. */
export const MODEL_RENDERERS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  'meta-llama/Llama-3.1-8B-Instruct': LLAMA3,
  'meta-llama/Llama-3.2-1B': ROLE_COLON,
  'meta-llama/Llama-3.2-3B': ROLE_COLON,
  'meta-llama/Llama-3.1-8B': ROLE_COLON,
  'meta-llama/Llama-3.1-70B': ROLE_COLON,
  'meta-llama/Llama-3.3-70B-Instruct': LLAMA3,
  'Qwen/Qwen3-VL-30B-A3B-Instruct': QWEN3_VL_INSTRUCT,
  'Qwen/Qwen3-VL-235B-A22B-Instruct': QWEN3_VL_INSTRUCT,
  'Qwen/Qwen3-8B-Base': ROLE_COLON,
  'Qwen/Qwen3-30B-A3B-Base': ROLE_COLON,
  'Qwen/Qwen3-8B': QWEN3,
  'Qwen/Qwen3-32B': QWEN3,
  'Qwen/Qwen3-30B-A3B': QWEN3,
  'Qwen/Qwen3-4B-Instruct-2507': QWEN3_INSTRUCT,
  'Qwen/Qwen3-30B-A3B-Instruct-2507': QWEN3_INSTRUCT,
  'Qwen/Qwen3-235B-A22B-Instruct-2507': QWEN3_INSTRUCT,
  'Qwen/Qwen3.5-4B': QWEN3_5,
  'Qwen/Qwen3.5-9B': QWEN3_5,
  'Qwen/Qwen3.5-9B-Base': ROLE_COLON,
  'Qwen/Qwen3.5-27B': QWEN3_5,
  'Qwen/Qwen3.5-35B-A3B': QWEN3_5,
  'Qwen/Qwen3.5-35B-A3B-Base': ROLE_COLON,
  'Qwen/Qwen3.5-397B-A17B': QWEN3_5,
  'Qwen/Qwen3.6-27B': QWEN3_5,
  'Qwen/Qwen3.6-35B-A3B': QWEN3_5,
  'Qwen/Qwen3.8-27B': QWEN3_8,
  'deepseek-ai/DeepSeek-V3.1': DEEPSEEK_V3,
  'deepseek-ai/DeepSeek-V3.1-Base': ROLE_COLON,
  'deepseek-ai/DeepSeek-V4.1-Flash': DEEPSEEK_V4_1,
  'deepseek-ai/DeepSeek-V4.1-Flash-1017': DEEPSEEK_V4_1,
  'openai/gpt-oss-20b': GPT_OSS,
  'openai/gpt-oss-120b': GPT_OSS,
  'moonshotai/Kimi-K2-Thinking': KIMI_K2,
  'moonshotai/Kimi-K2.5': KIMI_K25,
  'moonshotai/Kimi-K2.6': KIMI_K26,
  'zai-org/GLM-5.3': GLM5_3,
  'zai-org/GLM-5.3-Flash': GLM5_3,
  'nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16': NEMOTRON3,
  'nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16': NEMOTRON3_SUPER,
  'nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16': NEMOTRON3_ULTRA,
  'nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16': NEMOTRON3_LIGHTNING,
  'nvidia/NVIDIA-Nemotron-3.5-Super-VL-120B-A12B-BF16': NEMOTRON3_ULTRA,
  'thinkingmachines/Inkling': TML_V0,
  'thinkingmachines/Inkling-Small': TML_V0,
  'tinker-rx/tiny': BYTES,
  'tinker-rx/small': BYTES,
};

/**
 * The renderers made for a model, the recommended one first; a `:checkpoint` suffix is ignored.
 *
 * @throws RangeError for a model that is not in the table: pass a renderer's name to `getRenderer` instead
 */
export function renderersFor(model: string): readonly [string, ...string[]] {
  const name = model.split(':', 1)[0] ?? model;
  const known = Object.hasOwn(MODEL_RENDERERS, name) ? MODEL_RENDERERS[name] : undefined;
  if (known !== undefined) return known;
  if (name.startsWith('thinkingmachines/Inkling')) return TML_V0;
  throw new RangeError(
    `no renderer is known for ${model}: choose one by name with getRenderer, or 'chat_template' for its own template`,
  );
}

/** The recommended renderer for a model: `rendererFor('Qwen/Qwen3-8B')` is `'qwen3'`. Throws as {@link renderersFor}. */
export function rendererFor(model: string): string {
  return renderersFor(model)[0];
}
