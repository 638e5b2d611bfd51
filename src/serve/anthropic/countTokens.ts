import { concatMap, defer, from, of } from 'rxjs';
import { chatPrompt } from '../completion/ChatRequest.js';
import type { Endpoint } from '../http/Endpoint.js';
import { readMessagesAsk } from './messagesRequest.js';

/** `POST /v1/messages/count_tokens`: how long the prompt of a message would be. Nothing is sampled. */
export const countTokens: Endpoint = (body, gateway) =>
  defer(() => {
    // The same request, but for how much may be sampled.
    const ask = readMessagesAsk({ max_tokens: 1, ...(body as object) }, gateway);
    return from(gateway.find(ask.model)).pipe(
      concatMap((model) =>
        of({ json: { input_tokens: chatPrompt(model, ask.request).length }, warnings: ask.warnings }),
      ),
    );
  });
