import { continuePrompt, type Exchange } from '../../chat/renderers/core/continuePrompt.js';
import type { Renderer } from '../../chat/renderers/core/Renderer.js';
import type { ModelInput } from '../../wire/modelInput.js';
import { declaredMessages, plainPrompt, type ChatReply, type ChatRequest } from '../completion/ChatRequest.js';

/**
 * What an agent and a model have said to each other. A request that continues an exchange gets a prompt that extends
 * exactly what was sampled; any other one is a new branch.
 */
export class Conversation {
  readonly #renderer: Renderer;
  readonly #exchanges: Exchange[] = [];
  #branches = 0;
  #broken: string | undefined;

  constructor(renderer: Renderer) {
    this.#renderer = renderer;
  }

  /** How many requests began anew instead of continuing what was sampled; the first is one. */
  get branches(): number {
    return this.#branches;
  }

  /** Why the first branch after the beginning was one; undefined where there is none. */
  get broken(): string | undefined {
    return this.#broken;
  }

  promptOf(request: ChatRequest): ModelInput {
    // A turn that was begun for the model extends nothing that was sampled.
    if (request.prefill !== undefined) {
      this.#branches++;
      this.#broken ??= 'the reply was begun for the model';
      return plainPrompt(this.#renderer, request);
    }
    const messages = declaredMessages(this.#renderer, request);
    let reason: string | undefined;
    // The latest first: it has the longest history.
    for (const exchange of this.#exchanges.toReversed()) {
      const { prompt, broken } = continuePrompt(this.#renderer, exchange, messages);
      if (broken === undefined) return prompt;
      reason ??= broken;
    }
    this.#branches++;
    this.#broken ??= reason;
    return this.#renderer.buildGenerationPrompt(messages);
  }

  /** The reply is what the caller was told, which ends at a stop string; the tokens are all that was sampled. */
  add(request: ChatRequest, { prompt, tokens, text, toolCalls }: ChatReply): void {
    const messages = declaredMessages(this.#renderer, request);
    const reply = { role: 'assistant', content: text, ...(toolCalls.length > 0 ? { toolCalls } : {}) };
    this.#exchanges.push({ messages, prompt, tokens, reply });
  }
}
