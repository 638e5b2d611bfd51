import { concat, concatMap, defer, EMPTY, type OperatorFunction, throwError } from 'rxjs';
import { datumFromExample, type DatumOptions, type WeightedExample } from '../../chat/datum/datumFromExample.js';
import { hasThinking } from '../../chat/renderers/core/content.js';
import type { Message, ToolSpec } from '../../chat/renderers/core/Message.js';
import { checkRenderer } from '../../support/checks.js';
import { originOf, type RowOrigin } from '../../support/rows/rowOrigin.js';
import type { FieldEvent, RowEvent } from '../../support/rows/RowEvent.js';
import type { Datum } from '../../wire/datum.js';
import { ValidationError } from '../../wire/tinkerError.js';
import { type AfterFailure, failurePlan } from '../flow/FailurePolicy.js';
import { conversationOf, NotAConversation } from './internal/conversationOf.js';
import { declareTools } from './internal/declareTools.js';

/** What `toDatums` needs of a renderer. Those of `tinker-rx/chat` are such. */
export interface SupervisedRenderer<M, O> {
  /** The conversation as training examples, each with a weight for every token. */
  buildSupervisedExamples(messages: readonly M[], options?: { readonly trainOn?: O }): readonly WeightedExample[];
  /** Whether it leaves reasoning out of what is trained. */
  readonly leavesOutThinking?: boolean;
  /** Messages that declare tools; for rows that have some beside their messages. */
  declareTools?(tools: readonly ToolSpec[], systemPrompt?: string): Message[];
}

/** Options of `toDatums`. */
export interface ToDatumsOptions<O> extends DatumOptions {
  /** Which messages are trained on. Default: the renderer's, the last turn of the assistant; see below for rows with weights. */
  readonly trainOn?: O;
  /** What a row does that cannot be written: 'fail' ends the stream, 'skip' reports it. Default: what its source does, else 'fail'. */
  readonly onFailure?: 'fail' | 'skip' | AfterFailure<unknown>;
  /** Called for every row skipped, and for every row, or part of one, of which no token carries loss; at the end, for reasoning that the renderer left out. A file source is told, too. */
  readonly onEvent?: (event: RowEvent | FieldEvent) => void;
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
 * `toConversation` knows, so that `fromJsonl` will do. Tools beside the messages are declared in the renderer's own
 * words. Where a message has OpenAI's `weight`, messages of weight 0 carry no loss, and unless `trainOn` is given all
 * other messages of the assistant do.
 *
 * A row of no known form, what the renderer cannot write, and an example of which fewer than two tokens are left, are
 * errors that end the stream, with file and line where the row came from a file; a source with `onBadRow: 'skip'` skips
 * those, too. Examples without a token that carries loss are left out and reported; a stream of nothing else is a
 * {@link ValidationError}. Completes with the source. Holds nothing.
 */
export function toDatums<M, O>(
  renderer: SupervisedRenderer<M, O>,
  { trainOn, onFailure, onEvent, ...options }: ToDatumsOptions<O> = {},
): OperatorFunction<unknown, Datum> {
  checkRenderer('toDatums', renderer);
  const plan = onFailure === undefined ? undefined : failurePlan(onFailure);
  return (source) =>
    defer(() => {
      let made = 0;
      let untrained = 0;
      let unthinking = 0;
      let last: RowOrigin | undefined;
      const render = (row: unknown): readonly Datum[] => {
        const { messages, tools } = conversationOf(row);
        if (renderer.leavesOutThinking === true && messages.some(hasThinking)) unthinking++;
        const declared = declareTools(renderer, messages, tools);
        const chosen = trainOn ?? (declared.some(({ weight }) => weight !== undefined) ? BY_WEIGHT : undefined);
        const examples = renderer.buildSupervisedExamples(
          declared as readonly M[],
          chosen === undefined ? {} : { trainOn: chosen as O },
        );
        return examples.map((example) => datumFromExample(example, options));
      };
      return concat(
        source.pipe(
          concatMap((row, place) => {
            const origin = originOf(row);
            last = origin ?? last;
            const { file, line } = origin ?? { file: 'conversation', line: place + 1 };
            try {
              const datums = render(row);
              const trained = datums.filter(hasLoss);
              made += trained.length;
              if (trained.length < datums.length) {
                untrained++;
                const reason = `${trained.length === 0 ? 'no token' : `${datums.length - trained.length} of ${datums.length} examples`} carries loss`;
                origin?.untrained(line, reason);
                onEvent?.({ type: 'row-untrained', file, line, reason });
              }
              return trained;
            } catch (cause) {
              const reason = cause instanceof Error ? cause.message : String(cause);
              plan?.deadLetters?.({ item: row, error: cause, attempts: 1 });
              if (plan === undefined && origin !== undefined) origin.skip(line, reason, cause);
              else if (plan?.then !== 'skip') throw inPlace(cause, place);
              onEvent?.({ type: 'row-skipped', file, line, reason });
              return [];
            }
          }),
        ),
        defer(() => {
          if (unthinking > 0) {
            last?.unused(REASONING, unthinking);
            onEvent?.({ type: 'field-unused', file: last?.file ?? 'conversation', field: REASONING, rows: unthinking });
          }
          return made === 0 && untrained > 0
            ? throwError(() => new ValidationError(nothingToTrain(untrained, trainOn)))
            : EMPTY;
        }),
      );
    });
}

const REASONING = 'messages[].reasoning_content';
/** What rows with their own weights are trained on. */
const BY_WEIGHT = 'all_assistant_messages';

const nothingToTrain = (rows: number, trainOn: unknown): string =>
  `nothing to train: no token of ${rows === 1 ? 'the conversation' : `the ${rows} conversations`} carries loss` +
  `${typeof trainOn === 'string' ? ` with trainOn '${trainOn}'` : ''}; do they have answers of the assistant?`;

function hasLoss({ lossFnInputs: { weights } }: Datum): boolean {
  const values = weights === undefined ? undefined : 'data' in weights ? weights.data : weights;
  return values === undefined || Array.prototype.some.call(values, (weight) => Number(weight) !== 0);
}

/** An error that says which conversation it is about. */
function inPlace(cause: unknown, place: number): unknown {
  if (!(cause instanceof NotAConversation)) return cause;
  return new ValidationError(`conversation ${place}: ${cause.message}`, { cause: cause.cause });
}
