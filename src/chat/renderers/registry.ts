import type { Tokenizer } from '../tokenizer/Tokenizer.js';
import { BytesRenderer } from './families/bytes.js';
import { ChatTemplateRenderer, type ChatTemplateOptions } from './families/chatTemplate.js';
import { DeepSeekV3Renderer } from './families/deepseekV3.js';
import { DeepSeekV41Renderer } from './families/deepseekV4_1.js';
import { GlmRenderer } from './families/glm.js';
import { GptOssRenderer } from './families/gptOss.js';
import { KimiRenderer } from './families/kimi.js';
import { Llama3Renderer } from './families/llama3.js';
import { Nemotron3Renderer } from './families/nemotron3.js';
import { Qwen3Renderer } from './families/qwen3.js';
import { Qwen35Renderer } from './families/qwen3_5.js';
import { Qwen38Renderer } from './families/qwen3_8.js';
import type { Renderer } from './core/Renderer.js';
import { RoleColonRenderer } from './families/roleColon.js';
import { Smollm2Renderer } from './families/smollm2.js';
import { TmlV0Renderer } from './families/tmlV0.js';

/** Options that some families take; the others ignore them. */
export interface RendererOptions extends ChatTemplateOptions {
  /**
   * Leave reasoning out of earlier turns. Default: as the renderer's name says. `false` keeps it, which gives the families that can have it
   * the extension property.
   */
  readonly stripThinkingFromHistory?: boolean;
  /** gpt-oss: the date in its system message, `2026-01-02`. Default: today, read when the renderer is made. */
  readonly currentDate?: string;
  /** Inkling: thinking effort from 0 to below 1. Default 0.9. */
  readonly thinkingEffort?: number;
}

/** Makes a renderer for a tokenizer. */
export type RendererFactory = (tokenizer: Tokenizer, options: RendererOptions) => Renderer;

const BUILT_IN = {
  role_colon: (tokenizer) => new RoleColonRenderer(tokenizer),
  llama3: (tokenizer) => new Llama3Renderer(tokenizer),
  smollm2: (tokenizer) => new Smollm2Renderer(tokenizer),
  ...named(Qwen3Renderer, {
    qwen3: {},
    qwen3_disable_thinking: { thinking: 'off' },
    qwen3_instruct: { thinking: 'none' },
    qwen3_vl: { vision: true },
    qwen3_vl_instruct: { thinking: 'none', vision: true },
  }),
  ...named(Qwen35Renderer, {
    qwen3_5: {},
    qwen3_5_disable_thinking: { thinking: 'off' },
    qwen3_5_preserve_thinking: { stripThinkingFromHistory: false },
  }),
  ...named(Qwen38Renderer, {
    qwen3_8_xhigh_reasoning: {},
    qwen3_8_medium_reasoning: { effort: 'medium' },
    qwen3_8_low_reasoning: { effort: 'low' },
    qwen3_8_disable_thinking: { thinking: 'off' },
  }),
  ...named(DeepSeekV3Renderer, {
    deepseekv3: {},
    deepseekv3_disable_thinking: {},
    deepseekv3_thinking: { thinking: true },
  }),
  ...named(DeepSeekV41Renderer, {
    deepseekv4_1: {},
    deepseekv4_1_low_reasoning: { effort: 50 },
    deepseekv4_1_max_reasoning: { effort: 100 },
    deepseekv4_1_disable_thinking: { effort: null },
    deepseekv4_1_preserve_thinking: { stripThinkingFromHistory: false },
  }),
  ...named(GlmRenderer, {
    glm5_3_max_reasoning: {},
    glm5_3_low_reasoning: { effort: 'Low' },
    glm5_3_high_reasoning: { effort: 'High' },
  }),
  ...named(KimiRenderer, {
    kimi_k2: {},
    kimi_k25: { version: 'k2.5' },
    kimi_k25_disable_thinking: { version: 'k2.5', thinking: false },
    kimi_k26: { version: 'k2.5' },
    kimi_k26_disable_thinking: { version: 'k2.5', thinking: false },
    kimi_k26_preserve_thinking: { version: 'k2.5', stripThinkingFromHistory: false },
  }),
  ...named(Nemotron3Renderer, {
    nemotron3: {},
    nemotron3_low_thinking: { effort: 'low' },
    nemotron3_disable_thinking: { thinking: 'off' },
    nemotron3_preserve_thinking: { stripThinkingFromHistory: false },
    nemotron3_ultra: { ultra: true },
    nemotron3_ultra_disable_thinking: { ultra: true, thinking: 'off' },
    nemotron3_ultra_medium_thinking: { ultra: true, effort: 'efficient' },
    nemotron3_ultra_preserve_thinking: { ultra: true, stripThinkingFromHistory: false },
  }),
  ...named(GptOssRenderer, {
    gpt_oss_no_sysprompt: {},
    gpt_oss_low_reasoning: { effort: 'low' },
    gpt_oss_medium_reasoning: { effort: 'medium' },
    gpt_oss_high_reasoning: { effort: 'high' },
  }),
  tml_v0: (tokenizer, { thinkingEffort }) =>
    new TmlV0Renderer(tokenizer, 'tml_v0', thinkingEffort === undefined ? {} : { effort: thinkingEffort }),
  chat_template: (tokenizer, options) => new ChatTemplateRenderer(tokenizer, 'chat_template', options),
  tinker_rx_bytes: (tokenizer) => new BytesRenderer(tokenizer),
} satisfies Readonly<Record<string, RendererFactory>>;
/** The renderers that are known without registration. */
export type BuiltInRendererName = keyof typeof BUILT_IN;
/** A built-in renderer, or a custom one that was registered. */
export type RendererName = BuiltInRendererName | (string & Record<never, never>);
const FACTORIES: Readonly<Record<string, RendererFactory>> = BUILT_IN;

/** Factories for the names of one family; what the name says yields only to `stripThinkingFromHistory` and the date. */
function named<O extends object, N extends string>(
  family: new (tokenizer: Tokenizer, name?: string, options?: O) => Renderer,
  variants: Readonly<Record<N, NoInfer<O>>>,
): Record<N, RendererFactory> {
  return Object.fromEntries(
    Object.entries<O>(variants).map(([name, variant]): [string, RendererFactory] => [
      name,
      (tokenizer, { thinkingEffort: _, ...options }) => new family(tokenizer, name, { ...variant, ...options }),
    ]),
  ) as Record<N, RendererFactory>;
}

/** The names that {@link getRenderer} knows without registration. */
export const RENDERER_NAMES: readonly BuiltInRendererName[] = Object.keys(BUILT_IN) as BuiltInRendererName[];

const registered = new Map<string, RendererFactory>();

/**
 * Registers a custom renderer under a name. Choose a name with a slash, `my-org/my-format`, to stay clear of the built-in ones.
 *
 * @returns a function that takes it back
 * @throws RangeError when the name is taken
 */
export function registerRenderer(name: string, factory: RendererFactory): () => void {
  if (registered.has(name) || Object.hasOwn(FACTORIES, name))
    throw new RangeError(`a renderer named ${name} exists already`);
  registered.set(name, factory);
  return () => {
    if (registered.get(name) === factory) registered.delete(name);
  };
}

/** The names added by {@link registerRenderer}. */
export function registeredRenderers(): readonly string[] {
  return [...registered.keys()];
}

/**
 * The renderer of that name for a tokenizer.
 *
 * @throws RangeError for an unknown name, and for a tokenizer that lacks the family's special tokens
 */
export function getRenderer(name: RendererName, tokenizer: Tokenizer, options: RendererOptions = {}): Renderer {
  const factory = registered.get(name) ?? (Object.hasOwn(FACTORIES, name) ? FACTORIES[name] : undefined);
  if (factory === undefined)
    throw new RangeError(`unknown renderer ${name}; the built-in ones are ${RENDERER_NAMES.join(', ')}`);
  return factory(tokenizer, options);
}
