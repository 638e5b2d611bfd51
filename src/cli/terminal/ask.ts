import type { Renderer } from '../../chat/renderers/core/Renderer.js';
import type { Message } from '../../chat/renderers/core/Message.js';
import type { SamplingClient } from '../../client/SamplingClient.js';
import type { SamplingParams } from '../../wire/sampling.js';
import type { TinkerFuture } from '../../client/TinkerFuture.js';
import type { SampleResponse } from '../../wire/sampling.js';

/** Asks for the next message of a conversation, in the model's own format. */
export function ask(
  sampler: SamplingClient,
  renderer: Renderer,
  messages: readonly Message[],
  samplingParams: SamplingParams,
): TinkerFuture<SampleResponse> {
  return sampler.sample({
    prompt: renderer.buildGenerationPrompt(messages),
    samplingParams: { stop: renderer.getStopSequences(), ...samplingParams },
  });
}

/** The text a sample answers with. */
export const textOf = (renderer: Renderer, { sequences }: SampleResponse): string =>
  renderer.parse(sequences[0]?.tokens ?? []).text;
