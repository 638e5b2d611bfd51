/** Who speaks. The common ones are listed; families know a few more. */
export type Role = 'system' | 'developer' | 'user' | 'assistant' | 'tool' | (string & {});

/** Text meant to be read by the other side. */
export interface TextPart {
  readonly type: 'text';
  readonly text: string;
}

/** The model's reasoning, kept apart from what it says. */
export interface ThinkingPart {
  readonly type: 'thinking';
  readonly thinking: string;
}

/**
 * An image, as encoded bytes or as a pointer to an asset the service already holds.
 *
 * Width and height are read from the bytes when absent; a pointer has to bring them, or `expectedTokens`.
 */
export interface ImagePart {
  readonly type: 'image';
  readonly data?: Uint8Array;
  readonly location?: string;
  readonly format: 'png' | 'jpeg';
  readonly width?: number;
  readonly height?: number;
  /** Overrides the family's own count. */
  readonly expectedTokens?: number;
}

/** Audio as the service's serialised mel spectrogram. Only `tml_v0` accepts it. */
export interface AudioPart {
  readonly type: 'audio';
  readonly dmel: Uint8Array;
}

export type ContentPart = TextPart | ThinkingPart | ImagePart | AudioPart;
export type Content = string | readonly ContentPart[];

/** A call the model makes. `arguments` is JSON text, as in OpenAI's format, so that nothing is lost in between. */
export interface ToolCall {
  readonly name: string;
  readonly arguments: string;
  readonly id?: string;
}

/** Something that looked like a call and could not be read as one. */
export interface UnparsedToolCall {
  readonly rawText: string;
  readonly error: string;
}

/** A tool the model may call; `parameters` is a JSON Schema object. */
export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** One message of a conversation. */
export interface Message {
  readonly role: Role;
  readonly content: Content;
  readonly toolCalls?: readonly ToolCall[];
  readonly unparsedToolCalls?: readonly UnparsedToolCall[];
  /** Which call a `tool` message answers (Kimi names it in the text). */
  readonly toolCallId?: string;
  /** Name of the function a `tool` message answers for (gpt-oss and Inkling write it). */
  readonly name?: string;
  /** Only with `trainOn: 'customized'`, and then on every message. */
  readonly trainable?: boolean;
  /** 0: carries no loss, whatever `trainOn` says. 1, the default, leaves it to `trainOn`. As in OpenAI's fine-tuning files. */
  readonly weight?: 0 | 1;
  /** On a `system` message: the tools to declare, in the family's own words. See `Renderer.declareTools`. */
  readonly tools?: readonly ToolSpec[];
}
