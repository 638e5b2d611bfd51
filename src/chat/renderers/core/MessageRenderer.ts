import type { OperatorFunction } from 'rxjs';
import type { ModelInput } from '../../../wire/modelInput.js';
import type { Tokenizer } from '../../tokenizer/Tokenizer.js';
import { assemble, joinExtensions, type WeightedRun } from './assemble.js';
import { thinkingOf } from './content.js';
import type { Message, Role, ToolSpec } from './Message.js';
import { createMarkup, encodePieces, type Markup, type Piece, type Run } from './pieces.js';
import type {
  GenerationPromptOptions,
  ParsedResponse,
  ParseOptions,
  Renderer,
  ResponseDelta,
  SupervisedExample,
  SupervisedOptions,
  TrainOn,
} from './Renderer.js';
import { RendererError } from './RendererError.js';
import { contextAt, type RenderContext } from './RenderContext.js';
import { checkTrainable, isTrained } from './trainOn.js';

/** A message in pieces: what introduces it, what its author says (this is trained), and the rest of a stop signal that overlaps the next header. */
export interface RenderedMessage {
  readonly header: readonly Piece[];
  readonly output: readonly Piece[];
  readonly overlap?: readonly Piece[];
}

/**
 * The part that all families share: a conversation is its begin token and its messages in order, each a header and an output.
 *
 * A family says how one message is written ({@link renderMessage}), what the generation prompt ends with ({@link generationHeader}), and
 * how responses are read.
 */
export abstract class MessageRenderer implements Renderer {
  abstract readonly hasExtensionProperty: boolean;
  protected readonly markup: Markup;

  constructor(
    readonly name: string,
    /** The model's tokenizer. */
    readonly tokenizer: Tokenizer,
  ) {
    this.markup = createMarkup(tokenizer);
  }

  abstract getStopSequences(): readonly number[] | readonly string[];
  abstract parse(tokens: ArrayLike<number>, options?: ParseOptions): ParsedResponse;
  abstract parseStream(options?: ParseOptions): OperatorFunction<number | ArrayLike<number>, ResponseDelta>;

  protected abstract renderMessage(message: Message, context: RenderContext): RenderedMessage;

  /** What the prompt ends with: the header of a message that is yet to be written, and any prefill of the template. */
  protected generationHeader(role: Role, context: RenderContext): readonly Piece[] {
    return this.renderMessage({ role, content: '' }, context).header;
  }

  /** Tokens before the first message. */
  protected begin(_messages: readonly Message[]): readonly Piece[] {
    return [];
  }

  /** The conversation as the template sees it: system messages merged, defaults put in. */
  protected prepare(messages: readonly Message[]): readonly Message[] {
    return messages;
  }

  /** True when the prompt closes the thinking block: a produced turn with reasoning then contradicts the prompt. */
  protected get disablesThinking(): boolean {
    return false;
  }

  /** Index of the first message of the turn that is being produced: the one after the last user message. */
  protected lastTurnStart(messages: readonly Message[]): number {
    return messages.findLastIndex((message) => message.role === 'user') + 1;
  }

  buildGenerationPrompt(messages: readonly Message[], options: GenerationPromptOptions = {}): ModelInput {
    const { role = 'assistant', prefill = '' } = options;
    const prepared = this.prepare(messages);
    const runs = this.#encode(this.begin(prepared));
    prepared.forEach((message, index) => {
      const { header, output } = this.renderMessage(message, contextAt(prepared, index));
      runs.push(...this.#encode(header), ...this.#encode(output));
    });
    runs.push(...this.#encode(this.generationHeader(role, contextAt(prepared, prepared.length))));
    if (prefill !== '') runs.push(...this.#encode([prefill]));
    return assemble(runs.map((run) => ({ run, weight: 0 }))).modelInput;
  }

  buildSupervisedExample(messages: readonly Message[], options: SupervisedOptions = {}): SupervisedExample {
    const { trainOn = 'last_assistant_message' } = options;
    checkTrainable(messages, trainOn);
    const prepared = this.prepare(messages);
    const weighted: WeightedRun[] = this.#encode(this.begin(prepared)).map((run) => ({ run, weight: 0 }));
    const turnStart = this.lastTurnStart(prepared.slice(0, -1));
    prepared.forEach((message, index) => {
      const context = contextAt(prepared, index);
      const { header, output, overlap = [] } = this.renderMessage(message, context);
      const trained = isTrained(message, context, trainOn, turnStart);
      const weight = trained ? 1 : 0;
      const headerRuns = this.#encode(header);
      const outputRuns = this.#encode(output);
      let supplied = 0;
      if (trained && trainOn !== 'all_tokens' && message.role === 'assistant') {
        // Families that leave reasoning out would do so silently.
        if (this.disablesThinking && context.isLast && thinkingOf(message) !== '') throw this.#thinksAgainstPrompt();
        supplied = this.#supplied(headerRuns, outputRuns, context);
      }
      for (const run of headerRuns) weighted.push({ run, weight: trainOn === 'all_tokens' ? weight : 0 });
      for (const run of outputRuns) {
        const free = 'tokens' in run ? Math.min(supplied, run.tokens.length) : 0;
        supplied -= free;
        weighted.push({ run, weight, free });
      }
      if (context.isLast) for (const run of this.#encode(overlap)) weighted.push({ run, weight });
    });
    return assemble(weighted);
  }

  buildSupervisedExamples(messages: readonly Message[], options: SupervisedOptions = {}): SupervisedExample[] {
    const { trainOn = 'last_assistant_turn' } = options;
    if (this.hasExtensionProperty || trainOn === 'all_user_and_system_messages') {
      return [this.buildSupervisedExample(messages, { trainOn })];
    }
    checkTrainable(messages, trainOn);
    const trained = this.#trainedMessages(messages, trainOn);
    const examples = trained.map((index) => {
      const upTo = messages.slice(0, index + 1).map(({ trainable: _, ...message }): Message => message);
      return this.buildSupervisedExample(upTo, { trainOn: 'last_assistant_message' });
    });
    return joinExtensions(examples);
  }

  declareTools(_tools: readonly ToolSpec[], _systemPrompt?: string): Message[] {
    throw new RendererError(`${this.name} has no way to declare tools`);
  }

  #encode(pieces: readonly Piece[]): Run[] {
    return encodePieces(pieces, this.tokenizer);
  }

  /** How many tokens of the output the generation prompt would have written. */
  #supplied(header: readonly Run[], output: readonly Run[], context: RenderContext): number {
    const { index, messages } = context;
    const prompt = flatten(
      this.#encode(this.generationHeader('assistant', contextAt(messages.slice(0, index), index))),
    );
    const written = flatten([...header, ...output]);
    if (prompt.every((token, at) => written[at] === token)) return Math.max(0, prompt.length - flatten(header).length);
    if (this.disablesThinking && context.isLast) throw this.#thinksAgainstPrompt();
    return 0;
  }

  #thinksAgainstPrompt(): RendererError {
    return new RendererError(
      `${this.name} has thinking turned off: its prompt closes the thinking block, and this turn has reasoning in it. ` +
        'Use the thinking renderer of the family, or leave the reasoning out.',
    );
  }

  #trainedMessages(messages: readonly Message[], trainOn: TrainOn): number[] {
    const turnStart = this.lastTurnStart(messages.slice(0, -1));
    if (trainOn === 'all_messages' || trainOn === 'all_tokens') {
      throw new RendererError(
        `${this.name} writes an assistant message differently once it is history, so '${trainOn}' cannot be split into examples ` +
          'that match what sampling sees; call buildSupervisedExample if one sequence is what you want',
      );
    }
    return messages.flatMap((message, index) => {
      if (!isTrained(message, contextAt(messages, index), trainOn, turnStart)) return [];
      if (message.role === 'assistant') return [index];
      throw new RendererError(
        `${this.name} can train only assistant messages one by one, and message ${index} is ${message.role}'s`,
      );
    });
  }
}

function flatten(runs: readonly Run[]): number[] {
  return runs.flatMap((run) => ('tokens' in run ? [...run.tokens] : [NaN]));
}
