import type { ToolSpec } from '../../chat/renderers/core/Message.js';
import type { SamplingParams } from '../../wire/sampling.js';
import { withoutUndefined } from '../../wire/record.js';
import type { Gateway } from '../http/Endpoint.js';
import type { Fields } from '../http/Fields.js';

/** Temperature, top-p and seed; what is absent keeps the service's defaults. */
export function readSampling(fields: Fields): Pick<SamplingParams, 'temperature' | 'topP' | 'topK' | 'seed'> {
  const temperature = fields.number('temperature', 0, 2);
  const topP = fields.number('top_p', 0, 1);
  const topK = fields.integer('top_k', -1, 1_000_000);
  const seed = fields.integer('seed', Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  return withoutUndefined({ temperature, topP, topK: topK === 0 ? undefined : topK, seed });
}

/** A function as OpenAI declares it. `strict` has no effect: sampling is not constrained. */
export function readFunction(declared: Fields): ToolSpec {
  const name = declared.text('name');
  if (name === undefined) throw declared.wrong('name', 'is missing');
  const parameters = (declared.any('parameters') ?? { type: 'object', properties: {} }) as ToolSpec['parameters'];
  return { name, description: declared.text('description') ?? '', parameters };
}

/** The tools that the model is shown. A forced call cannot be had; naming one tool shows only that one. */
export function readToolChoice(fields: Fields, tools: readonly ToolSpec[]): readonly ToolSpec[] {
  const choice = fields.any('tool_choice');
  if (choice === undefined || choice === 'auto') return tools;
  if (choice === 'none') return [];
  fields.unmet('tool_choice', 'must be auto or none: a call cannot be forced through this protocol');
  if (typeof choice !== 'object') return tools;
  const { name, function: called } = choice as { name?: unknown; function?: { name?: unknown } };
  const wanted = tools.filter((tool) => tool.name === (called?.name ?? name));
  return wanted.length === 0 ? tools : wanted;
}

/** Most log probabilities in one answer: writing more would hold everybody up. */
const MOST_LOGPROBS = 32_768;

/** How many tokens may be sampled where each is listed with the `top` most likely ones. */
export const mostWithLogprobs = (top: number, { maxTokens }: Gateway): number =>
  Math.min(maxTokens, Math.floor(MOST_LOGPROBS / (top + 1)));

/** Penalties and biases cannot be honoured. */
export function hintPenalties(fields: Fields): void {
  for (const name of ['frequency_penalty', 'presence_penalty', 'min_p']) fields.hint(name, (value) => value === 0);
  fields.hint('repetition_penalty', (value) => value === 1);
  fields.hint('logit_bias', (value) => Object.keys(value as object).length === 0);
}

/** Fields of every OpenAI request that do not change an answer, and `more` of one endpoint. */
export const ignoreCommon = (fields: Fields, ...more: readonly string[]): void =>
  fields.ignore(
    ...['user', 'metadata', 'service_tier', 'safety_identifier', 'moderation'],
    ...['prompt_cache_key', 'prompt_cache_retention', 'prompt_cache_options'],
    ...more,
  );
