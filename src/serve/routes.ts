import { of } from 'rxjs';
import type { Endpoint, Gateway } from './http/Endpoint.js';
import { openAiRefusal, type Route } from './http/GatewayServer.js';
import type { ModelShelf } from './models/ModelShelf.js';
import { anthropicRefusal, messages } from './anthropic/messages.js';
import { chatCompletions } from './openai/chatCompletions.js';
import { completions } from './openai/completions.js';
import { responses } from './openai/responses.js';

/** Finds the endpoint of a path. */
export function routes(gateway: Gateway, shelf: ModelShelf): (method: string, path: string) => Route | undefined {
  const models: Endpoint = () => {
    const data = shelf.names().map((id) => ({ id, object: 'model', created: 0, owned_by: 'tinker' }));
    return of({ json: { object: 'list', data } });
  };
  const openAi = (endpoint: Endpoint): Route => ({ endpoint, gateway, refusal: openAiRefusal });
  const known = new Map<string, Route>([
    ['GET /v1/models', openAi(models)],
    ['POST /v1/chat/completions', openAi(chatCompletions)],
    ['POST /v1/completions', openAi(completions)],
    ['POST /v1/responses', openAi(responses)],
    ['POST /v1/messages', { endpoint: messages, gateway, refusal: anthropicRefusal }],
  ]);
  return (method, path) => known.get(`${method} ${path}`);
}
