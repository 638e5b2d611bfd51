/** Parameters that LoRA of rank 1 adds to the three parts of a model; rank r adds r times as many. */
export interface LoraParameters {
  /** Parameters in the MLP layers. */
  readonly mlp: number;
  /** Parameters in the attention layers. */
  readonly attention: number;
  /** Parameters in the unembedding. */
  readonly unembedding: number;
}

/** What is known of a model without asking anyone. */
export interface ModelFacts {
  /** Width of the model. */
  readonly hiddenSize: number;
  /** Parameters as the maker writes them; of a mixture of experts all and active ones: `30B-A3B`. */
  readonly size: string;
  /** LoRA parameters per unit of rank. */
  readonly loraParameters: LoraParameters;
  /** Whether it was trained to converse, as opposed to continue text. */
  readonly isChat: boolean;
  /** Whether prompts may contain images. */
  readonly takesImages: boolean;
  /** Whether prompts may contain audio. */
  readonly takesAudio: boolean;
}

type Traits = Partial<Pick<ModelFacts, 'isChat' | 'takesImages' | 'takesAudio'>>;

const facts = (
  hiddenSize: number,
  size: string,
  [mlp, attention, unembedding]: readonly [number, number, number],
  { isChat = true, takesImages = false, takesAudio = false }: Traits = {},
): ModelFacts => ({
  hiddenSize,
  size,
  loraParameters: { mlp, attention, unembedding },
  isChat,
  takesImages,
  takesAudio,
});

/** Every model of the public tinker-cookbook. Experts share the LoRA factor on the hidden side, which these counts reflect. */
export const MODEL_FACTS: Readonly<Record<string, ModelFacts>> = {
  'meta-llama/Llama-3.1-8B-Instruct': facts(4096, '8B', [1_769_472, 851_968, 132_352]),
  'meta-llama/Llama-3.2-1B': facts(2048, '1B', [491_520, 212_992, 130_304], { isChat: false }),
  'meta-llama/Llama-3.2-3B': facts(3072, '3B', [946_176, 573_440, 131_328], { isChat: false }),
  'meta-llama/Llama-3.1-8B': facts(4096, '8B', [1_769_472, 851_968, 132_352], { isChat: false }),
  'meta-llama/Llama-3.1-70B': facts(8192, '70B', [8_847_360, 4_096_000, 136_448], { isChat: false }),
  'meta-llama/Llama-3.3-70B-Instruct': facts(8192, '70B', [8_847_360, 4_096_000, 136_448]),
  'Qwen/Qwen3-VL-30B-A3B-Instruct': facts(2048, '30B-A3B', [14_450_688, 835_584, 153_984], { takesImages: true }),
  'Qwen/Qwen3-VL-235B-A22B-Instruct': facts(4096, '235B-A22B', [56_598_528, 3_176_448, 156_032], { takesImages: true }),
  'Qwen/Qwen3-8B-Base': facts(4096, '8B', [1_769_472, 958_464, 156_032], { isChat: false }),
  'Qwen/Qwen3-30B-A3B-Base': facts(2048, '30B-A3B', [14_450_688, 835_584, 153_984], { isChat: false }),
  'Qwen/Qwen3-8B': facts(4096, '8B', [1_769_472, 958_464, 156_032]),
  'Qwen/Qwen3-32B': facts(5120, '32B', [5_898_240, 2_490_368, 157_056]),
  'Qwen/Qwen3-30B-A3B': facts(2048, '30B-A3B', [14_450_688, 835_584, 153_984]),
  'Qwen/Qwen3-4B-Instruct-2507': facts(2560, '4B', [1_327_104, 737_280, 154_496]),
  'Qwen/Qwen3-30B-A3B-Instruct-2507': facts(2048, '30B-A3B', [14_450_688, 835_584, 153_984]),
  'Qwen/Qwen3-235B-A22B-Instruct-2507': facts(4096, '235B-A22B', [56_598_528, 3_176_448, 156_032]),
  'Qwen/Qwen3.5-4B': facts(2560, '4B', [1_130_496, 897_024, 250_880], { takesImages: true }),
  'Qwen/Qwen3.5-9B': facts(4096, '9B', [1_572_864, 1_130_496, 252_416], { takesImages: true }),
  'Qwen/Qwen3.5-9B-Base': facts(4096, '9B', [1_572_864, 1_130_496, 252_416], { isChat: false, takesImages: true }),
  'Qwen/Qwen3.5-27B': facts(5120, '27B', [4_325_376, 2_965_504, 253_440], { takesImages: true }),
  'Qwen/Qwen3.5-35B-A3B': facts(2048, '35B-A3B', [16_281_600, 1_013_760, 250_368], { takesImages: true }),
  'Qwen/Qwen3.5-35B-A3B-Base': facts(2048, '35B-A3B', [16_281_600, 1_013_760, 250_368], {
    isChat: false,
    takesImages: true,
  }),
  'Qwen/Qwen3.5-397B-A17B': facts(4096, '397B-A17B', [96_030_720, 2_841_600, 252_416], { takesImages: true }),
  'Qwen/Qwen3.6-27B': facts(5120, '27B', [4_325_376, 2_965_504, 253_440], { takesImages: true }),
  'Qwen/Qwen3.6-35B-A3B': facts(2048, '35B-A3B', [16_281_600, 1_013_760, 250_368], { takesImages: true }),
  'Qwen/Qwen3.8-27B': facts(5120, '27B', [4_325_376, 2_965_504, 253_440], { takesImages: true }),
  'deepseek-ai/DeepSeek-V3.1': facts(7168, '671B-A37B', [94_307_328, 2_440_000, 136_448]),
  'deepseek-ai/DeepSeek-V3.1-Base': facts(7168, '671B-A37B', [94_307_328, 2_440_000, 136_448], { isChat: false }),
  'deepseek-ai/DeepSeek-V4.1-Flash': facts(5120, '552B-A16B', [107_673_600, 1_013_760, 134_400]),
  'deepseek-ai/DeepSeek-V4.1-Flash-1017': facts(5120, '552B-A16B', [107_673_600, 1_013_760, 134_400]),
  'openai/gpt-oss-20b': facts(2880, '21B-A3.6B', [6_842_880, 497_664, 203_968]),
  'openai/gpt-oss-120b': facts(2880, '117B-A5.1B', [40_124_160, 746_496, 203_968]),
  'moonshotai/Kimi-K2-Thinking': facts(7168, '1T-A32B', [144_583_680, 1_940_288, 171_008]),
  'moonshotai/Kimi-K2.5': facts(7168, '1T-A32B', [144_583_680, 1_940_288, 171_008], { takesImages: true }),
  'moonshotai/Kimi-K2.6': facts(7168, '1T-A32B', [144_583_680, 1_940_288, 171_008], { takesImages: true }),
  'zai-org/GLM-5.3': facts(6144, '744B-A40B', [121_356_288, 2_920_320, 161_024]),
  'zai-org/GLM-5.3-Flash': facts(4096, '320B-A18B', [75_755_520, 2_009_088, 158_976]),
  'nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16': facts(2688, '30B-A3B', [11_346_176, 584_832, 133_760]),
  'nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16': facts(4096, '120B-A12B', [111_349_760, 1_675_264, 135_168]),
  'nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16': facts(8192, '550B-A55B', [254_529_536, 4_134_912, 139_264]),
  'nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16': facts(2688, '30B-A3B', [11_346_176, 584_832, 133_760]),
  'nvidia/NVIDIA-Nemotron-3.5-Super-VL-120B-A12B-BF16': facts(4096, '120B-A12B', [111_349_760, 1_675_264, 135_168], {
    takesImages: true,
  }),
  'thinkingmachines/Inkling': facts(6144, '975B-A41B', [154_705_920, 3_424_256, 207_168], {
    takesImages: true,
    takesAudio: true,
  }),
  'thinkingmachines/Inkling-Small': facts(4096, '276B-A12B', [64_503_808, 1_311_744, 205_120], {
    takesImages: true,
    takesAudio: true,
  }),
};

/**
 * Facts about a model; a `:suffix` of its name is ignored.
 *
 * @throws RangeError for a model that is not in the table
 */
export function modelFacts(model: string): ModelFacts {
  const name = model.split(':', 1)[0] ?? model;
  const known = Object.hasOwn(MODEL_FACTS, name) ? MODEL_FACTS[name] : undefined;
  if (known === undefined) throw new RangeError(`no facts are known about ${model}`);
  return known;
}
