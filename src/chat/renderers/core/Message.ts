/** Who speaks. The common ones are listed; families know a few more. */
export type Role = 'system' | 'developer' | 'user' | 'assistant' | 'tool' | (string & {});

/** Text meant to be read by the other side. */
export interface TextPart {
  /** Plain text. */
  readonly type: 'text';
  /** The text. */
  readonly text: string;
}

/** The model's reasoning, kept apart from what it says. */
export interface ThinkingPart {
  /** The model's reasoning. */
  readonly type: 'thinking';
  /** The reasoning as text. */
  readonly thinking: string;
}

/**
 * An image, as encoded bytes or as a pointer to an asset the service already holds.
 *
 * Width and height are read from the bytes when absent; a pointer has to bring them, or `expectedTokens`.
 */
export interface ImagePart {
  /** An image. */
  readonly type: 'image';
  /** The file's bytes. Give this or `location`. */
  readonly data?: Uint8Array;
  /** Where the service keeps the image. Give this or `data`. */
  readonly location?: string;
  /** The file's format. */
  readonly format: 'png' | 'jpeg';
  /** Width in pixels. Default: read from the bytes. */
  readonly width?: number;
  /** Height in pixels. Default: read from the bytes. */
  readonly height?: number;
  /** Overrides the family's own count. */
  readonly expectedTokens?: number;
}

/** Audio as the service's serialised mel spectrogram. Only `tml_v0` accepts it. */
export interface AudioPart {
  /** Audio. */
  readonly type: 'audio';
  /** The discretised mel spectra, as bytes. */
  readonly dmel: Uint8Array;
}

/** One part of a message's content. */
export type ContentPart = TextPart | ThinkingPart | ImagePart | AudioPart;
/** What a message says: text, or parts in order. */
export type Content = string | readonly ContentPart[];

/** A call the model makes. `arguments` is JSON text, as in OpenAI's format, so that nothing is lost in between. */
export interface ToolCall {
  /** The tool's name. */
  readonly name: string;
  /** The arguments as JSON text. */
  readonly arguments: string;
  /** The call's id, if the format has ids. */
  readonly id?: string;
}

/** Something that looked like a call and could not be read as one. */
export interface UnparsedToolCall {
  /** The text as the model wrote it. */
  readonly rawText: string;
  /** Why it could not be parsed. */
  readonly error: string;
}

/** A tool the model may call; `parameters` is a JSON Schema object. */
export interface ToolSpec {
  /** The tool's name. */
  readonly name: string;
  /** What it does, for the model to read. */
  readonly description: string;
  /** The JSON schema of its arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** One message of a conversation. */
export interface Message {
  /** Who speaks: `system`, `user`, `assistant`, `tool` or another role of the format. */
  readonly role: Role;
  /** What the message says. */
  readonly content: Content;
  /** Tools the assistant calls. Default: none. */
  readonly toolCalls?: readonly ToolCall[];
  /** Calls that could not be parsed. Default: none. */
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
