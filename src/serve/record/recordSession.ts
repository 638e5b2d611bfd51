import { map, type Observable, Subject, tap } from 'rxjs';
import type { Renderer } from '../../chat/renderers/core/Renderer.js';
import { cancelling } from '../../support/cancelling.js';
import type { Policy, Turn } from '../../rl/sampling/rollout.js';
import {
  type ChatModel,
  declaredMessages,
  plainPrompt,
  type ChatReply,
  type ChatRequest,
} from '../completion/ChatRequest.js';
import type { Gateway } from '../http/Endpoint.js';
import { continuePrompt, type Exchange } from '../../chat/renderers/core/continuePrompt.js';
import type { ModelInput } from '../../wire/modelInput.js';

/** One agent's way to a model, and what was said on it. */
export interface RecordedSession {
  /** For OpenAI's clients. */
  readonly baseURL: string;
  /** For Anthropic's clients, which add `/v1` themselves. */
  readonly url: string;
  /** The key that requests of this session must send. */
  readonly apiKey: string;
  /** What was sampled so far, in order, as exact ids with their log probabilities. */
  readonly turns: readonly Turn[];
  /** Each turn when it has been sampled; completes when the session is closed. */
  readonly turns$: Observable<Turn>;
  /** How many requests started a new conversation instead of continuing what was sampled: 1 for an agent that only adds to its history. */
  readonly branches: number;
  /** Why the first of them did, where there is one. */
  readonly broken: string | undefined;
  /** Its address stops working. */
  close(): void;
}

/** A session's recorder, and the gateway that serves it. */
export interface Recorder {
  readonly gateway: Gateway;
  readonly turns: readonly Turn[];
  readonly turns$: Observable<Turn>;
  readonly conversation: Conversation;
  close(): void;
}

/**
 * Samples from a rollout's policy and keeps what it gave. Answers that do not fit a schema are not sampled again, since
 * every sample is trained on; streams deliver the finished answer.
 */
export function recordSession(policy: Pick<Policy<unknown>, 'sample'>, renderer: Renderer, shared: Gateway): Recorder {
  const turns: Turn[] = [];
  const sampled = new Subject<Turn>();
  const conversation = new Conversation(renderer);
  const keep = (turn: Turn): void => {
    turns.push(turn);
    sampled.next(turn);
  };
  const model: ChatModel = {
    renderer,
    newId: shared.newId,
    promptOf: (request) => conversation.promptOf(request),
    sampler: {
      sample: (options) =>
        cancelling(policy.sample(options)).pipe(
          tap((found) => found.forEach(keep)),
          map((found) => ({ sequences: found.map(({ sequence }) => sequence), promptCacheHitTokens: 0 })),
        ),
    },
  };
  return {
    turns,
    turns$: sampled.asObservable(),
    conversation,
    close: () => sampled.complete(),
    gateway: {
      ...shared,
      find: () => Promise.resolve(model),
      pieceTokens: undefined,
      jsonRetries: 0,
      onReply: (request, reply) => conversation.add(request, reply),
    },
  };
}

/**
 * What an agent and a model have said to each other. A request that continues an exchange gets a prompt that extends
 * exactly what was sampled; any other one is a new branch.
 */
export class Conversation {
  readonly #exchanges: Exchange[] = [];
  #branches = 0;
  #broken: string | undefined;

  constructor(private readonly renderer: Renderer) {}

  /** How many requests began anew instead of continuing what was sampled; the first is one. */
  get branches(): number {
    return this.#branches;
  }

  /** Why the first branch after the beginning was one; undefined if there is none. */
  get broken(): string | undefined {
    return this.#broken;
  }

  promptOf(request: ChatRequest): ModelInput {
    // A turn that was begun for the model extends nothing that was sampled.
    if (request.prefill !== undefined) {
      this.#branches++;
      this.#broken ??= 'the reply was begun for the model';
      return plainPrompt(this.renderer, request);
    }
    const messages = declaredMessages(this.renderer, request);
    let reason: string | undefined;
    // The latest first: it has the longest history.
    for (const exchange of this.#exchanges.toReversed()) {
      const { prompt, broken } = continuePrompt(this.renderer, exchange, messages);
      if (broken === undefined) return prompt;
      reason ??= broken;
    }
    this.#branches++;
    this.#broken ??= reason;
    return this.renderer.buildGenerationPrompt(messages);
  }

  /** The reply is what the caller was told, which ends at a stop string; the tokens are all that was sampled. */
  add(request: ChatRequest, { prompt, tokens, text, toolCalls }: ChatReply): void {
    const messages = declaredMessages(this.renderer, request);
    const reply = { role: 'assistant', content: text, ...(toolCalls.length > 0 ? { toolCalls } : {}) };
    this.#exchanges.push({ messages, prompt, tokens, reply });
  }
}
