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
  /** The conversation so far. */
  readonly prompt: readonly PromptMessage[];
  /** Maximum tokens of the answer. Default: as many as the context has room for. */
  readonly maxOutputTokens?: number | undefined;
  /** Randomness: 0 is greedy. Default 1. */
  readonly temperature?: number | undefined;
  /** Texts that end the answer. Default: the renderer's. */
  readonly stopSequences?: readonly string[] | undefined;
  /** Sample among the likeliest tokens that together have this probability. Default 1: all. */
  readonly topP?: number | undefined;
  /** Sample among the k likeliest tokens. Default: all. */
  readonly topK?: number | undefined;
  /** Not supported: a warning is returned. */
  readonly presencePenalty?: number | undefined;
  /** Not supported: a warning is returned. */
  readonly frequencyPenalty?: number | undefined;
  /** `text`, or `json` with a schema. */
  readonly responseFormat?:
    | {
        /** `text` or `json`. */
        readonly type: string;
        /** The JSON schema of the answer. */
        readonly schema?: unknown;
      }
    | undefined;
  /** For the same answer again, if the service supports it. Default: none. */
  readonly seed?: number | undefined;
  /** The tools the model may call. Default: none. */
  readonly tools?: readonly CallTool[] | undefined;
  /** Which tool to call. Default `auto`. */
  readonly toolChoice?:
    | {
        /** `auto`, `none`, `required` or `tool`. */
        readonly type: string;
        /** The tool, for the type `tool`. */
        readonly toolName?: string;
      }
    | undefined;
  /** Cancels the call. */
  readonly abortSignal?: AbortSignal | undefined;
  /** Not supported: a warning is returned. Set `defaultHeaders` on the ServiceClient instead. */
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined;
  /** How much to think, for inference endpoints. Of a sampler a warning is returned: choose a renderer that thinks, or one that does not. */
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
  /** The exact ids of the prompt, if it is text only. */
  promptTokens: number[] | null;
  /** The exact ids that were sampled. */
  tokens: number[];
  /** One per token; null if the service returned none. */
  logprobs: number[] | null;
  /** Why sampling ended: `length` or `stop`. */
  stopReason: string;
}
/** What the AI SDK passes through, by provider. */
export interface ProviderMetadata {
  [provider: string]: TinkerMetadata;
  /** What this provider adds. */
  tinker: TinkerMetadata;
}

/** A complete answer. */
export interface GenerateResult {
  /** Its parts: text, reasoning and tool calls, in order. */
  content: ResultContent[];
  /** Why it ended. */
  finishReason: Finish;
  /** How many tokens went in and came out. */
  usage: Usage;
  /** What this provider adds. */
  providerMetadata: ProviderMetadata;
  /** About the response. */
  response: {
    /** The model that answered. */
    modelId: string;
  };
  /** Options that were ignored. */
  warnings: Warning[];
}

/** One part of a streamed answer. */
export type StreamPart =
  | {
      /** The stream begins. */
      type: 'stream-start';
      /** Options that were ignored. */
      warnings: Warning[];
    }
  | {
      /** About the response. */
      type: 'response-metadata';
      /** The model that answers. */
      modelId: string;
    }
  | {
      /** A part begins or ends. */
      type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end' | 'tool-input-end';
      /** The part's id. */
      id: string;
    }
  | {
      /** More of a part. */
      type: 'text-delta' | 'reasoning-delta' | 'tool-input-delta';
      /** The part's id. */
      id: string;
      /** The new text. */
      delta: string;
    }
  | {
      /** A tool call begins. */
      type: 'tool-input-start';
      /** The part's id. */
      id: string;
      /** The tool's name. */
      toolName: string;
    }
  | {
      /** A complete tool call. */
      type: 'tool-call';
      /** The call's id. */
      toolCallId: string;
      /** The tool's name. */
      toolName: string;
      /** Its arguments as JSON text. */
      input: string;
    }
  | {
      /** The answer has ended. */
      type: 'finish';
      /** How many tokens went in and came out. */
      usage: Usage;
      /** Why it ended. */
      finishReason: Finish;
      /** What this provider adds. */
      providerMetadata: ProviderMetadata;
    }
  | {
      /** The answer failed. */
      type: 'error';
      /** Why it failed. */
      error: unknown;
    };

/** A `LanguageModelV4`, or a `LanguageModelV3` for the AI SDK 6. */
export interface TinkerLanguageModel<V extends SpecificationVersion = 'v4'> {
  /** The version of the AI SDK's provider interface. */
  readonly specificationVersion: V;
  /** Always `tinker`. */
  readonly provider: string;
  /** The model's name, as it was given. */
  readonly modelId: string;
  /** Addresses the model could read itself: none. */
  readonly supportedUrls: Record<string, RegExp[]>;
  /** Returns a complete answer. The AI SDK calls this. */
  doGenerate(options: CallOptions): Promise<GenerateResult>;
  /** Returns an answer part by part. The AI SDK calls this. */
  doStream(options: CallOptions): Promise<{ stream: ReadableStream<StreamPart> }>;
}
