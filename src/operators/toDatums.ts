import { concatMap, type OperatorFunction } from 'rxjs';
import { datumFromExample, type DatumOptions, type WeightedExample } from '../chat/datum/datumFromExample.js';
import { toConversation } from '../sources/toConversation.js';
import type { Datum } from '../wire/datum.js';
import { ValidationError } from '../wire/tinkerError.js';

/** What `toDatums` needs of a renderer. Those of `tinker-rx/chat` are such. */
export interface SupervisedRenderer<M, O> {
  buildSupervisedExamples(messages: readonly M[], options?: { readonly trainOn?: O }): readonly WeightedExample[];
}

export interface ToDatumsOptions<O> extends DatumOptions {
  /** Which messages are trained on. Default: the renderer's, the last turn of the assistant. */
  readonly trainOn?: O;
}

/**
 * Renders conversations into training datums: tokens, targets shifted by one, weights.
 *
 * ```
 * source    -a---b----|
 * result    -x---(yz)-|            b needs two examples: its history reads differently as it grows
 * ```
 * ```ts
 * fromConversations('chats.jsonl').pipe(toDatums(renderer, { maxLength: 4096 }))
 * ```
 * Takes messages as the renderer does, in an array or as `messages` of an object, and rows in any other form that
 * {@link toConversation} knows, so that `fromJsonl` will do. A row of no known form, what the renderer cannot write, and
 * an example of which fewer than two tokens are left, are errors and end the stream. Completes with the source. Holds
 * nothing.
 */
export function toDatums<M, O>(
  renderer: SupervisedRenderer<M, O>,
  { trainOn, ...options }: ToDatumsOptions<O> = {},
): OperatorFunction<unknown, Datum> {
  return (source) =>
    source.pipe(
      concatMap((row, place) => {
        const messages = messagesOf(row, place) as readonly M[];
        const examples = renderer.buildSupervisedExamples(messages, trainOn === undefined ? {} : { trainOn });
        return examples.map((example) => datumFromExample(example, options));
      }),
    );
}

function messagesOf(row: unknown, place: number): readonly unknown[] {
  const messages = Array.isArray(row) ? (row as unknown[]) : (row as { readonly messages?: unknown } | null)?.messages;
  if (Array.isArray(messages) && messages.length > 0 && messages.every(isMessage)) return messages;
  try {
    return toConversation(row).messages;
  } catch (cause) {
    throw new ValidationError(`conversation ${place}: ${(cause as Error).message}`, { cause });
  }
}

/** Whether a renderer takes it as it is; OpenAI's names for tool calls want translating first. */
function isMessage(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || 'tool_calls' in value || 'tool_call_id' in value) return false;
  const { role, content } = value as { readonly role?: unknown; readonly content?: unknown };
  return typeof role === 'string' && (typeof content === 'string' || Array.isArray(content));
}
