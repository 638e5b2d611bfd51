import { of } from 'rxjs';
import { anthropicRefusal, messages } from './anthropic/messages.js';
import type { Endpoint, Gateway } from './http/Endpoint.js';
import { openAiRefusal, type Route } from './http/GatewayServer.js';
import { chatCompletions } from './chat/chatCompletions.js';
import { completions } from './completions/completions.js';
import { responses } from './responses/responses.js';

/** Finds the endpoint of a path, for the gateway that serves it. */
export function routes(
  names: () => readonly string[],
): (method: string, path: string, gateway: Gateway) => Route | undefined {
  const models: Endpoint = () => {
    const data = names().map((id) => ({ id, object: 'model', created: 0, owned_by: 'tinker' }));
    return of({ json: { object: 'list', data } });
  };
  const known = new Map<string, Omit<Route, 'gateway'>>([
    ['GET /v1/models', { endpoint: models, refusal: openAiRefusal }],
    ['POST /v1/chat/completions', { endpoint: chatCompletions, refusal: openAiRefusal }],
    ['POST /v1/completions', { endpoint: completions, refusal: openAiRefusal }],
    ['POST /v1/responses', { endpoint: responses, refusal: openAiRefusal }],
    ['POST /v1/messages', { endpoint: messages, refusal: anthropicRefusal }],
  ]);
  return (method, path, gateway) => {
    const route = known.get(`${method} ${path}`);
    return route && { ...route, gateway };
  };
}
