import type { IncomingHttpHeaders } from 'node:http';
import type { Observable } from 'rxjs';
import type { ChatModel, ChatReply, ChatRequest } from '../completion/ChatRequest.js';
import type { CheckJson } from '../json/jsonOutput.js';
import type { ItemStore } from '../responses/items.js';

/** What every endpoint works with. */
export interface Gateway {
  find(model: string | undefined): Promise<ChatModel>;
  readonly mainName: string;
  /** Most tokens one request may sample, all its choices together. */
  readonly maxTokens: number;
  /** Tokens per piece of a stream; undefined: delivered when complete. */
  readonly pieceTokens: number | undefined;
  /** How often an answer that does not fit its JSON schema is sampled again. */
  readonly jsonRetries: number;
  readonly checkJson: CheckJson;
  /** Whether a wish that cannot be granted is an error; else it is a warning header. */
  readonly strict: boolean;
  /** What responses have said lately, for clients that only name it. */
  readonly items: ItemStore;
  readonly nowMs: () => number;
  readonly newId: () => string;
  /** Told of every reply and what it replies to. */
  readonly onReply: (request: ChatRequest, reply: ChatReply) => void;
}

/** An answer of another service, passed on as it comes. */
export interface ForwardedAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly retryAfter?: string;
  readonly bytes: Observable<Uint8Array>;
}

/** A JSON answer, server-sent events as they come, or what an upstream says; unsubscribing from these cancels the sample. */
export type Answer = ({ readonly json: unknown } | { readonly events: Observable<string> } | ForwardedAnswer) & {
  /** What was asked for and is left out. */
  readonly warnings?: readonly string[];
};

/** One path of an API: it emits one answer. Unsubscribing cancels what is in flight. */
export type Endpoint = (body: unknown, gateway: Gateway, call: CallFacts) => Observable<Answer>;

/** What is known of a request beside its body. */
export interface CallFacts {
  /** Also the header `x-request-id` of the answer. */
  readonly requestId: string;
  readonly headers: IncomingHttpHeaders;
}

/** One server-sent event. */
export const event = (data: unknown, name?: string): string =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
