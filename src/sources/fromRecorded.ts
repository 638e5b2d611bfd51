import { concat, concatMap, defer, EMPTY, filter, from, map, type Observable, of, reduce, toArray } from 'rxjs';
import { type Conversation, toConversation } from '../chat/data/toConversation.js';
import type { Preference } from '../chat/data/toPreference.js';
import { textOf } from '../chat/renderers/core/content.js';
import type { ToolSpec } from '../chat/renderers/core/Message.js';
import { fromJsonl } from './fromJsonl.js';

/** A call of a model as `tinker-rx serve --record` or the middleware of the AI SDK wrote it: a line of the file. */
export interface RecordedCall {
  /** Tells calls from feedback. */
  readonly type: 'call';
  /** The request's id: the header `x-request-id` of the reply. */
  readonly id: string;
  /** The id inside the reply, such as `chatcmpl-…`. */
  readonly replyId?: string;
  /** When it was asked: an ISO date with time. */
  readonly at: string;
  /** Through which API. */
  readonly api: 'chat' | 'messages' | 'responses' | 'completions' | 'ai-sdk';
  /** The model that was asked. */
  readonly model?: string;
  /** What was asked, as messages in a form that `toConversation` knows. */
  readonly messages?: readonly unknown[];
  /** The tools that were declared. */
  readonly tools?: readonly unknown[];
  /** Temperature and other settings of the request. */
  readonly params?: Readonly<Record<string, unknown>>;
  /** What the model said, as a message. Absent if the call failed. */
  readonly reply?: unknown;
  /** Why the reply ended, in the words of the API. */
  readonly finish?: string;
  /** Tokens, as the API counts them. */
  readonly usage?: unknown;
  /** The HTTP status; 200 for calls of the AI SDK. */
  readonly status: number;
  /** From the request to the end of the reply, in milliseconds. */
  readonly latencyMs: number;
  /** Why request or reply could not be read. */
  readonly problem?: string;
  /** The newest rating that was sent for it; more is better. Absent: none. */
  readonly rating?: number;
  /** What the model should have said, by the newest feedback. Absent: none. */
  readonly correction?: string;
}

/** What somebody thinks of a reply: a line of the file. */
export interface RecordedFeedback {
  /** Tells feedback from calls. */
  readonly type: 'feedback';
  /** The id of the call or of its reply. */
  readonly id: string;
  /** How good it was; more is better. */
  readonly rating?: number;
  /** What should have been said. */
  readonly correction?: string;
  /** Anything else. */
  readonly comment?: string;
  /** When it came: an ISO date with time. */
  readonly at: string;
}

/** A question that was asked, with the answer that was given or should have been: a task for evaluations. */
export interface RecordedTask extends Conversation {
  /** The id of the call. */
  readonly id: string;
  /** The correction, or what was answered. */
  readonly expected: string;
}

/** Options of `fromRecorded`. */
export interface RecordedOptions<A = 'conversations'> {
  /** What the stream carries. Default `conversations`. */
  readonly as?: A;
  /** Only calls that were rated at least so; for preferences, what an answer needs to be chosen. Default: any, also unrated ones. */
  readonly minRating?: number;
  /** Only calls of this model. Default: all. */
  readonly model?: string;
  /** Only calls for which it is true. Default: all. */
  readonly where?: (call: RecordedCall) => boolean;
}

interface Shapes {
  readonly conversations: Conversation;
  readonly preferences: Preference;
  readonly tasks: RecordedTask;
  readonly calls: RecordedCall;
}

/**
 * What was recorded of a model's traffic, for training: conversations, preferences, tasks, or the calls themselves.
 *
 * ```ts
 * fromRecorded('calls.jsonl', { minRating: 1 }).pipe(toDatums(renderer), batch({ size: 32 }))
 * ```
 * Ratings and corrections stand behind their calls, so the file is read twice, and the ids of what was rated are held. A correction takes the
 * place of the reply. Preferences are corrections over replies, and the best over the worst rated reply to the same messages; they hold all
 * calls that were rated. Calls that failed, and ones that could not be read, are left out, except of `calls`.
 *
 * A line that is not valid JSON ends the stream with a {@link BadRowError}; a file that cannot be read is a {@link SourceError}.
 */
export function fromRecorded<A extends keyof Shapes = 'conversations'>(
  path: string | URL,
  { as = 'conversations' as A, minRating, model, where = () => true }: RecordedOptions<A> = {},
): Observable<Shapes[A]> {
  const lines = fromJsonl<RecordedCall | RecordedFeedback>(path);
  const calls = (least: number | undefined): Observable<RecordedCall> =>
    defer(() => lines.pipe(filter(isFeedback), reduce(noted, new Map<string, RecordedFeedback>()))).pipe(
      concatMap((ratings) =>
        lines.pipe(
          filter(isCall),
          map((call) => rated(call, ratings)),
        ),
      ),
      filter((call) => least === undefined || (call.rating ?? -Infinity) >= least),
      filter((call) => (model === undefined || call.model === model) && where(call)),
    );
  const shaped: { readonly [S in keyof Shapes]: () => Observable<Shapes[S]> } = {
    calls: () => calls(minRating),
    conversations: () => calls(minRating).pipe(concatMap((call) => conversationsOf(call, best(call)))),
    tasks: () => calls(minRating).pipe(concatMap(tasksOf)),
    preferences: () =>
      calls(undefined).pipe(
        filter(isRated),
        toArray(),
        concatMap((all) => preferencesOf(all, minRating)),
      ),
  };
  return shaped[as]();
}

const isCall = (line: RecordedCall | RecordedFeedback): line is RecordedCall => line.type === 'call';
const isFeedback = (line: RecordedCall | RecordedFeedback): line is RecordedFeedback => line.type === 'feedback';
const isRated = ({ rating, correction }: RecordedCall) => rating !== undefined || correction !== undefined;

/** The newest rating and the newest correction of each id. */
function noted(all: Map<string, RecordedFeedback>, feedback: RecordedFeedback): Map<string, RecordedFeedback> {
  return all.set(feedback.id, { ...all.get(feedback.id), ...feedback });
}

function rated(call: RecordedCall, ratings: ReadonlyMap<string, RecordedFeedback>): RecordedCall {
  const { rating, correction } = { ...ratings.get(call.replyId ?? ''), ...ratings.get(call.id) };
  return {
    ...call,
    ...(rating === undefined ? {} : { rating }),
    ...(correction === undefined ? {} : { correction }),
  };
}

/** What should be learned of a call. */
const best = ({ correction, reply }: RecordedCall): unknown =>
  correction === undefined ? reply : { role: 'assistant', content: correction };

function conversationsOf({ messages, tools, status }: RecordedCall, reply: unknown): Observable<Conversation> {
  if (messages === undefined || messages.length === 0 || reply === undefined || status >= 400) return EMPTY;
  return of(toConversation({ messages: [...messages, reply], ...(tools === undefined ? {} : { tools }) }));
}

const tasksOf = (call: RecordedCall): Observable<RecordedTask> =>
  conversationsOf(call, best(call)).pipe(
    map(({ messages, tools }) => ({
      id: call.id,
      messages: messages.slice(0, -1),
      ...toolsOf(tools),
      expected: textOf(messages.at(-1)!),
    })),
  );

const toolsOf = (tools: readonly ToolSpec[] | undefined) => (tools === undefined ? {} : { tools });

/** Corrections over replies, then the best over the worst rated reply to the same messages. */
function preferencesOf(calls: readonly RecordedCall[], minRating = -Infinity): Observable<Preference> {
  const groups = new Map<string, RecordedCall[]>();
  for (const call of calls) {
    const key = JSON.stringify(call.messages);
    if (call.rating !== undefined) groups.set(key, [...(groups.get(key) ?? []), call]);
  }
  const corrected = from(calls.filter(({ correction }) => correction !== undefined)).pipe(
    concatMap((call) => pairOf(call, best(call), call.reply)),
  );
  const compared = from(groups.values()).pipe(
    concatMap((group) => {
      const ordered = group.toSorted((a, b) => a.rating! - b.rating!);
      const [worst, better] = [ordered[0]!, ordered.at(-1)!];
      const differs = better.rating! > worst.rating! && better.rating! >= minRating;
      return differs ? pairOf(better, better.reply, worst.reply) : EMPTY;
    }),
  );
  return concat(corrected, compared);
}

function pairOf(call: RecordedCall, better: unknown, worse: unknown): Observable<Preference> {
  return conversationsOf(call, better).pipe(
    concatMap(({ messages: chosen, tools }) =>
      conversationsOf(call, worse).pipe(map(({ messages: rejected }) => ({ chosen, rejected, ...toolsOf(tools) }))),
    ),
  );
}
