import type { Tokenizer } from '../tokenizer/Tokenizer.js';
import { BytesRenderer } from './bytes.js';
import { Llama3Renderer } from './llama3.js';
import { Qwen3Renderer } from './qwen3.js';
import type { Renderer } from './Renderer.js';
import { RoleColonRenderer } from './roleColon.js';

/** Options that some families take; the others ignore them. */
export interface RendererOptions {
  /**
   * Leave reasoning out of earlier turns. Default: as the renderer's name says. `false` keeps it, which gives the families that can have it
   * the extension property.
   */
  readonly stripThinkingFromHistory?: boolean;
}

/** Makes a renderer for a tokenizer. */
export type RendererFactory = (tokenizer: Tokenizer, options: RendererOptions) => Renderer;

const FACTORIES: Readonly<Record<string, RendererFactory>> = {
  role_colon: (tokenizer) => new RoleColonRenderer(tokenizer),
  llama3: (tokenizer) => new Llama3Renderer(tokenizer),
  qwen3: (tokenizer, options) => new Qwen3Renderer(tokenizer, 'qwen3', options),
  qwen3_disable_thinking: (tokenizer, options) =>
    new Qwen3Renderer(tokenizer, 'qwen3_disable_thinking', { ...options, thinking: 'off' }),
  qwen3_instruct: (tokenizer, options) =>
    new Qwen3Renderer(tokenizer, 'qwen3_instruct', { ...options, thinking: 'none' }),
  qwen3_vl: (tokenizer, options) => new Qwen3Renderer(tokenizer, 'qwen3_vl', { ...options, vision: true }),
  qwen3_vl_instruct: (tokenizer, options) =>
    new Qwen3Renderer(tokenizer, 'qwen3_vl_instruct', { ...options, thinking: 'none', vision: true }),
  tinker_rx_bytes: (tokenizer) => new BytesRenderer(tokenizer),
};

/** The names that {@link getRenderer} knows without registration. */
export const RENDERER_NAMES: readonly string[] = Object.keys(FACTORIES);

const registered = new Map<string, RendererFactory>();

/**
 * Makes a renderer of one's own known by name. Choose a name with a slash, `my-org/my-format`, to stay clear of the built-in ones.
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
export function getRenderer(name: string, tokenizer: Tokenizer, options: RendererOptions = {}): Renderer {
  const factory = registered.get(name) ?? (Object.hasOwn(FACTORIES, name) ? FACTORIES[name] : undefined);
  if (factory === undefined)
    throw new RangeError(`unknown renderer ${name}; the built-in ones are ${RENDERER_NAMES.join(', ')}`);
  return factory(tokenizer, options);
}
