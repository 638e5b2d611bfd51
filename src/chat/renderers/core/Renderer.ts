import type { OperatorFunction } from 'rxjs';
import type { ModelInput } from '../../../wire/modelInput.js';
import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import type { Message, Role, ToolCall, ToolSpec, UnparsedToolCall } from './Message.js';

/**
 * Which tokens carry loss.
 *
 * - `last_assistant_message`: the final message, which has to be the assistant's
 * - `last_assistant_turn`: every assistant message after the last user message
 * - `all_assistant_messages`, `all_messages`, `all_user_and_system_messages`: those messages, without their headers
 * - `all_tokens`: everything but the begin-of-text token
 * - `customized`: the messages whose `trainable` is true; then every message must carry the flag
 *
 * Whatever the mode (but `all_tokens`), tokens that the generation prompt supplies carry none. Whatever the mode, a message whose `weight` is 0
 * carries none.
 */
export type TrainOn =
  | 'last_assistant_message'
  | 'last_assistant_turn'
  | 'all_assistant_messages'
  | 'all_messages'
  | 'all_tokens'
  | 'all_user_and_system_messages'
  | 'customized';

/** Options of {@link Renderer.buildGenerationPrompt}. */
export interface GenerationPromptOptions {
  /** Role of the message to be sampled. Default `assistant`. */
  readonly role?: Role;
  /** Text put in the model's mouth after the header, encoded as text. Default none. */
  readonly prefill?: string;
}

/** Options of the supervised builders. */
export interface SupervisedOptions {
  /** Which tokens carry loss. Default `last_assistant_message`; `last_assistant_turn` where several examples are built. */
  readonly trainOn?: TrainOn;
}

/** Tokens with one weight each. Weights are unshifted: weight i belongs to token i. */
export interface SupervisedExample {
  /** The whole conversation as tokens. */
  readonly modelInput: ModelInput;
  /** How much each position counts: 1 where the model should learn, 0 elsewhere. */
  readonly weights: Float32Array;
}

/** Options of {@link Renderer.parse} and {@link Renderer.parseStream}. */
export interface ParseOptions {
  /**
   * What the prompt left open. Default: what {@link Renderer.buildGenerationPrompt} leaves open after a user message. Say `text` where a
   * prefill closed the thinking block, or if the family opens none after tool results (DeepSeek V3).
   */
  readonly start?: 'text' | 'thinking';
}

/** Why a response ended: the family's stop signal, the model's end-of-text token, or neither (or more than one). */
export type Termination = 'stop' | 'end_of_text' | 'malformed';

/** What {@link Renderer.parse} reads from sampled tokens. */
export interface ParsedResponse {
  /** The reply as a message, ready to be appended to the conversation. */
  readonly message: Message;
  /** The answer without reasoning and tool calls. */
  readonly text: string;
  /** The reasoning; empty if there is none. */
  readonly thinking: string;
  /** The tools it calls, in order. */
  readonly toolCalls: readonly ToolCall[];
  /** Calls that could not be parsed. */
  readonly unparsedToolCalls: readonly UnparsedToolCall[];
  /** How the answer ended. */
  readonly termination: Termination;
}

/** One step of a streamed response. Text and thinking deltas, joined, give exactly what `parse` gives. */
export type ResponseDelta =
  | {
      /** The answer starts. */
      readonly type: 'header';
      /** Who speaks. */
      readonly role: Role;
    }
  | {
      /** More of the answer's text. */
      readonly type: 'text';
      /** The new text. */
      readonly text: string;
      /** Which part of the content it belongs to, counted from 0. */
      readonly contentIndex: number;
    }
  | {
      /** More of the reasoning. */
      readonly type: 'thinking';
      /** The new text. */
      readonly thinking: string;
      /** Which part of the content it belongs to, counted from 0. */
      readonly contentIndex: number;
    }
  | {
      /** A complete tool call. */
      readonly type: 'tool-call';
      /** The call. */
      readonly call: ToolCall;
    }
  | {
      /** A tool call that could not be parsed. */
      readonly type: 'unparsed-tool-call';
      /** The call. */
      readonly call: UnparsedToolCall;
    }
  | {
      /** The answer has ended. */
      readonly type: 'end';
      /** The whole answer. */
      readonly response: ParsedResponse;
    };

/**
 * Conversations ↔ tokens for one family of models.
 *
 * Text of messages, names, tools and arguments is always encoded as text; only the template itself places special tokens, so no message can
 * forge a turn marker.
 */
export interface Renderer {
  /** The name it was made by, as in the public tinker-cookbook: `qwen3`, `llama3`, … */
  readonly name: string;
  /** The model's tokenizer. */
  readonly tokenizer: Tokenizer;
  /**
   * True when every generation prompt of a growing conversation extends the one before it and its reply, so that several turns can share
   * one training example and one cache.
   */
  readonly hasExtensionProperty: boolean;
  /** True when reasoning is left out of what is trained, without an error: `toDatums` counts and reports such rows. Default false. */
  readonly leavesOutThinking?: boolean;
  /** The prompt that asks for the next message. Throws a `RendererError` if the family cannot write the conversation. */
  buildGenerationPrompt(messages: readonly Message[], options?: GenerationPromptOptions): ModelInput;
  /** The conversation as one training example. `trainOn` is `last_assistant_message` by default. */
  buildSupervisedExample(messages: readonly Message[], options?: SupervisedOptions): SupervisedExample;
  /**
   * The conversation as training examples that match what sampling sees: one when the family has the extension property, else one per
   * trained message, each ending at it; neighbours are joined if the longer begins with the shorter. `trainOn` is
   * `last_assistant_turn` by default.
   */
  buildSupervisedExamples(messages: readonly Message[], options?: SupervisedOptions): SupervisedExample[];
  /** What to pass as `SamplingParams.stop`. */
  getStopSequences(): readonly number[] | readonly string[];
  /** Reads sampled tokens; never throws on what a model may produce, and returns its best effort when malformed. */
  parse(tokens: ArrayLike<number>, options?: ParseOptions): ParsedResponse;
  /**
   * The same, as tokens arrive: single ids or arrays of them in, deltas out, the parsed response last.
   *
   * Emits `end` when the source completes; errors pass through; holds back only incomplete characters and trailing white space. Each
   * subscription has its own state.
   */
  parseStream(options?: ParseOptions): OperatorFunction<number | ArrayLike<number>, ResponseDelta>;
  /** Messages to put before a conversation so that the model knows its tools. Throws a `RendererError` if the family has no tools. */
  declareTools(tools: readonly ToolSpec[], systemPrompt?: string): Message[];
}
