import { concatMap, type OperatorFunction } from 'rxjs';
import { datumFromExample, type DatumOptions, type WeightedExample } from '../chat/datum/datumFromExample.js';
import type { Datum } from '../wire/datum.js';

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
 * source    -a---b-|
 * result    -x---(yz)-|            b needs two examples: its history reads differently as it grows
 * ```
 * ```ts
 * fromConversations('chats.jsonl').pipe(toDatums(renderer, { maxLength: 4096 }))
 * ```
 * Takes conversations, or bare arrays of messages. What the renderer cannot write, and an example of which fewer than
 * two tokens are left, is an error, which ends the stream. Completes with the source. Holds nothing.
 */
export function toDatums<M, O>(
  renderer: SupervisedRenderer<M, O>,
  { trainOn, ...options }: ToDatumsOptions<O> = {},
): OperatorFunction<{ readonly messages: readonly M[] } | readonly M[], Datum> {
  return (source) =>
    source.pipe(
      concatMap((conversation) => {
        const messages = 'messages' in conversation ? conversation.messages : conversation;
        const examples = renderer.buildSupervisedExamples(messages, trainOn === undefined ? {} : { trainOn });
        return examples.map((example) => datumFromExample(example, options));
      }),
    );
}
