import type { Renderer } from '../../chat/renderers/core/Renderer.js';
import type { SamplingClient, ServiceClient } from '../../client/index.js';
import type { Context } from '../context.js';
import { loadRenderer } from '../loadRenderer.js';
import { waitFor } from '../terminal/waitFor.js';
import { modelOf } from '../modelOf.js';

/** A sampler of a base model or a checkpoint, and how to speak to it. */
export async function openSampler(
  context: Context,
  service: ServiceClient,
  { model, renderer: name }: { readonly model: string; readonly renderer?: string },
): Promise<{ readonly sampler: SamplingClient; readonly renderer: Renderer }> {
  const { source } = await modelOf(model);
  const { events$ } = service;
  const sampler = await waitFor(context, `opening ${model}`, service.createSamplingClient(source), events$);
  return { sampler, renderer: await loadRenderer(context, () => sampler.getRenderer(name), events$) };
}
