import type { ToolSpec } from '../chat/renderers/core/Message.js';
import type { ChatRequest } from '../serve/completion/ChatRequest.js';
import { askForJson } from '../serve/json/jsonOutput.js';
import type { SamplingParams } from '../wire/sampling.js';
import { toMessages } from './toMessages.js';
import type { CallOptions, Warning } from './types.js';

/** A call as a request, and what of it cannot be honoured: an inference endpoint can do other things than a sampler. */
export function toRequest(
  options: CallOptions,
  defaults: Omit<SamplingParams, 'stop'>,
  isHosted: boolean,
): { readonly request: ChatRequest; readonly warnings: Warning[] } {
  const { maxOutputTokens, temperature, topP, topK, seed, stopSequences } = options;
  const given = { maxTokens: maxOutputTokens, temperature, topP, topK, seed };
  const asked = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const request: ChatRequest = {
    messages: toMessages(options.prompt),
    tools: toolSpecs(options),
    samplingParams: { ...defaults, ...asked },
    ...(stopSequences === undefined ? {} : { stop: stopSequences }),
  };
  const { responseFormat: format } = options;
  return {
    request: format?.type === 'json' ? askForJson(request, { schema: format.schema as object | undefined }) : request,
    warnings: [...warningsOf(options), ...(isHosted ? hostedWarnings(options) : samplerWarnings(options))],
  };
}

function toolSpecs({ tools = [], toolChoice }: CallOptions): ToolSpec[] {
  if (toolChoice?.type === 'none') return [];
  return tools.flatMap((tool): ToolSpec[] => {
    if (tool.type !== 'function') return [];
    if (toolChoice?.type === 'tool' && tool.name !== toolChoice.toolName) return [];
    const { name, description = '', inputSchema } = tool;
    return [{ name, description, parameters: inputSchema as ToolSpec['parameters'] }];
  });
}

function* warningsOf(options: CallOptions): Iterable<Warning> {
  const { presencePenalty, frequencyPenalty, tools = [], responseFormat } = options;
  if (presencePenalty !== undefined && presencePenalty !== 0) yield unsupported('presencePenalty');
  if (frequencyPenalty !== undefined && frequencyPenalty !== 0) yield unsupported('frequencyPenalty');
  for (const tool of tools) {
    if (tool.type !== 'function') yield unsupported(`provider-defined tool ${tool.id}`);
  }
  if (responseFormat?.type === 'json') {
    yield {
      type: 'compatibility',
      feature: 'responseFormat',
      details: 'the schema is part of the prompt; sampling is not constrained to it',
    };
  }
}

function* samplerWarnings({ toolChoice, reasoning, headers }: CallOptions): Iterable<Warning> {
  if (toolChoice?.type === 'required' || toolChoice?.type === 'tool') {
    yield unsupported('toolChoice', 'the model is shown the tools and decides for itself whether to call one');
  }
  if (reasoning !== undefined && reasoning !== 'provider-default') {
    yield unsupported('reasoning', 'the renderer decides it: choose one of the family by name');
  }
  if (hasHeaders(headers)) yield unsupported('headers', 'set defaultHeaders on the ServiceClient');
}

function* hostedWarnings({ seed, headers }: CallOptions): Iterable<Warning> {
  if (seed !== undefined) yield unsupported('seed', 'use a sampler for answers that can be repeated');
  if (hasHeaders(headers)) yield unsupported('headers');
}

/** The AI SDK names itself in a header. */
const hasHeaders = (headers: CallOptions['headers'] = {}): boolean =>
  Object.entries(headers).some(([name, value]) => name !== 'user-agent' && value !== undefined);

const unsupported = (feature: string, details?: string): Warning => ({
  type: 'unsupported',
  feature,
  ...(details === undefined ? {} : { details }),
});
