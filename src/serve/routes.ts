import { defer, map, of } from 'rxjs';
import { anthropicRefusal, messages, countTokens } from './anthropic/messages.js';
import { chatCompletions } from './chat/chatCompletions.js';
import { completions } from './completions/completions.js';
import type { Endpoint, Gateway } from './http/Endpoint.js';
import { GatewayError, openAiRefusal } from './http/GatewayError.js';
import type { Route } from './http/GatewayServer.js';
import { responses } from './responses/responses.js';

const modelOf = (id: string): object => ({ id, object: 'model', created: 0, owned_by: 'tinker' });
const ONE_MODEL = '/v1/models/';
const ANTHROPIC = '/v1/messages';

/** How errors of a path are written. */
export const refusalOf = (path: string): Route['refusal'] =>
  path.includes(ANTHROPIC) ? anthropicRefusal : openAiRefusal;

/** Finds the endpoint of a path, for the gateway that serves it; `names` are the models that are listed. */
export function findRoute(
  method: string,
  path: string,
  gateway: Gateway,
  names: () => readonly string[],
): Route | undefined {
  const refusal = refusalOf(path);
  const endpoint = ENDPOINTS.get(`${method} ${path}`);
  if (endpoint !== undefined) return { name: path, endpoint, gateway, refusal };
  if (method !== 'GET') return undefined;
  if (path === '/v1/models') {
    const list: Endpoint = () => of({ json: { object: 'list', data: names().map(modelOf) } });
    return { name: path, endpoint: list, gateway, refusal };
  }
  if (!path.startsWith(ONE_MODEL)) return undefined;
  return { name: `${ONE_MODEL}{model}`, endpoint: oneModel(path.slice(ONE_MODEL.length)), gateway, refusal };
}

const ENDPOINTS: ReadonlyMap<string, Endpoint> = new Map([
  ['POST /v1/chat/completions', chatCompletions],
  ['POST /v1/completions', completions],
  ['POST /v1/responses', responses],
  [`POST ${ANTHROPIC}`, messages],
  [`POST ${ANTHROPIC}/count_tokens`, countTokens],
]);

/** Whether a model can be asked: a checkpoint is opened for it. */
const oneModel =
  (encoded: string): Endpoint =>
  (_, gateway) =>
    defer(() => {
      const id = decoded(encoded);
      return gateway.find(id).then(() => id);
    }).pipe(map((id) => ({ json: modelOf(id) })));

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new GatewayError(400, 'this address cannot be read');
  }
}
