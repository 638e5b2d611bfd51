import { findModel, MODELS } from './modelTable.js';

/** Every model of the public cookbook → the renderers made for it, the recommended one first; and the embedded service's own models. */
export const MODEL_RENDERERS: Readonly<Record<string, readonly [string, ...string[]]>> = Object.fromEntries(
  Object.entries(MODELS).map(([name, { renderers }]) => [name, renderers]),
);

/** Models of this maker that are newer than the table are written as this one. */
const INKLING = 'thinkingmachines/Inkling';

/**
 * The renderers made for a model, the recommended one first; a `:checkpoint` suffix is ignored.
 *
 * @throws RangeError for a model that is not in the table: pass a renderer's name to `getRenderer` instead
 */
export function renderersFor(model: string): readonly [string, ...string[]] {
  const known = findModel(model) ?? (model.startsWith(INKLING) ? findModel(INKLING) : undefined);
  if (known !== undefined) return known.renderers;
  throw new RangeError(
    `no renderer is known for ${model}: choose one by name with getRenderer, or 'chat_template' for its own template`,
  );
}

/** The recommended renderer for a model: `rendererFor('Qwen/Qwen3-8B')` is `'qwen3'`. Throws as {@link renderersFor}. */
export function rendererFor(model: string): string {
  return renderersFor(model)[0];
}
