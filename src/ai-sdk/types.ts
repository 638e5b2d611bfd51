/**
 * The parts of the AI SDK's language model specification that this model reads and writes. Written out instead of
 * imported, so that one declaration fits both `@ai-sdk/provider` 4 (`LanguageModelV4`) and 3 (`LanguageModelV3`).
 */

export type SpecificationVersion = 'v3' | 'v4';

interface FilePart {
  readonly type: 'file';
  readonly mediaType: string;
  readonly data: unknown;
}
interface TextPart {
  readonly type: 'text';
  readonly text: string;
}
interface ReasoningPart {
  readonly type: 'reasoning';
  readonly text: string;
}
interface ToolCallPart {
  readonly type: 'tool-call';
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}
export interface ToolResultPart {
  readonly type: 'tool-result';
  readonly toolCallId: string;
  readonly toolName: string;
  readonly output: { readonly type: string; readonly value?: unknown; readonly reason?: string };
}
interface OtherPart {
  readonly type: 'custom' | 'reasoning-file' | 'tool-approval-response' | 'tool-approval-request';
}
export type PromptPart = TextPart | FilePart | ReasoningPart | ToolCallPart | ToolResultPart | OtherPart;

export type PromptMessage =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user' | 'assistant' | 'tool'; readonly content: readonly PromptPart[] };

/** What a call may ask for. */
export interface CallOptions {
  readonly prompt: readonly PromptMessage[];
  readonly maxOutputTokens?: number | undefined;
  readonly temperature?: number | undefined;
  readonly stopSequences?: readonly string[] | undefined;
  readonly topP?: number | undefined;
  readonly topK?: number | undefined;
  readonly presencePenalty?: number | undefined;
  readonly frequencyPenalty?: number | undefined;
  readonly responseFormat?: { readonly type: string; readonly schema?: unknown } | undefined;
  readonly seed?: number | undefined;
  readonly tools?: readonly CallTool[] | undefined;
  readonly toolChoice?: { readonly type: string; readonly toolName?: string } | undefined;
  readonly abortSignal?: AbortSignal | undefined;
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined;
  readonly reasoning?: string | undefined;
}
export type CallTool =
  | {
      readonly type: 'function';
      readonly name: string;
      readonly description?: string;
      readonly inputSchema: unknown;
    }
  | { readonly type: 'provider'; readonly id: string; readonly name: string };

export type Warning =
  | { type: 'unsupported'; feature: string; details?: string }
  | { type: 'compatibility'; feature: string; details?: string };

export type ResultContent =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  | { type: 'tool-call'; toolCallId: string; toolName: string; input: string };

export interface Usage {
  inputTokens: {
    total: number | undefined;
    noCache: number | undefined;
    cacheRead: number | undefined;
    cacheWrite: number | undefined;
  };
  outputTokens: { total: number | undefined; text: number | undefined; reasoning: number | undefined };
}
export interface Finish {
  unified: 'stop' | 'length' | 'tool-calls';
  raw: string | undefined;
}
/** Under the key `tinker`. */
export interface TinkerMetadata {
  [key: string]: number[] | string | null;
  /** The exact ids of the prompt, where it is text only. */
  promptTokens: number[] | null;
  /** The exact ids that were sampled. */
  tokens: number[];
  /** One per token; null where the service returned none. */
  logprobs: number[] | null;
  stopReason: string;
}
export interface ProviderMetadata {
  [provider: string]: TinkerMetadata;
  tinker: TinkerMetadata;
}

export interface GenerateResult {
  content: ResultContent[];
  finishReason: Finish;
  usage: Usage;
  providerMetadata: ProviderMetadata;
  response: { modelId: string };
  warnings: Warning[];
}

export type StreamPart =
  | { type: 'stream-start'; warnings: Warning[] }
  | { type: 'response-metadata'; modelId: string }
  | { type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end' | 'tool-input-end'; id: string }
  | { type: 'text-delta' | 'reasoning-delta' | 'tool-input-delta'; id: string; delta: string }
  | { type: 'tool-input-start'; id: string; toolName: string }
  | { type: 'tool-call'; toolCallId: string; toolName: string; input: string }
  | { type: 'finish'; usage: Usage; finishReason: Finish; providerMetadata: ProviderMetadata }
  | { type: 'error'; error: unknown };

/** A `LanguageModelV4`, or a `LanguageModelV3` for the AI SDK 6. */
export interface TinkerLanguageModel<V extends SpecificationVersion = 'v4'> {
  readonly specificationVersion: V;
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: Record<string, RegExp[]>;
  doGenerate(options: CallOptions): Promise<GenerateResult>;
  doStream(options: CallOptions): Promise<{ stream: ReadableStream<StreamPart> }>;
}
