import {
  asyncScheduler,
  concatMap,
  defer,
  EMPTY,
  expand,
  last,
  map,
  type Observable,
  type ObservableInput,
  of,
  type SchedulerLike,
} from 'rxjs';
import { toObservable } from '../../support/toObservable.js';
import { checkIntegers, checkRenderer } from '../../support/checks.js';
import { continuePrompt } from '../../chat/renderers/core/continuePrompt.js';
import type { Message } from '../../chat/renderers/core/Message.js';
import type { ParsedResponse, Renderer } from '../../chat/renderers/core/Renderer.js';
import type { SamplingClient } from '../../client/SamplingClient.js';
import type { SamplingParams } from '../../wire/sampling.js';
import { graded } from '../rewards/graded.js';
import { numberOf } from '../rewards/numberOf.js';
import type { Graded, Rollout, RolloutContext, RolloutHook, Turn } from '../sampling/rollout.js';

/** Why a conversation ended: it was over, or a limit was reached. */
export type StopKind =
  | 'done'
  | 'max_turns'
  | 'max_tokens'
  | 'max_sampled_tokens'
  | 'length'
  | 'parse_error'
  | 'timeout'
  | 'max_tool_calls'
  | 'tool_errors';

/** A conversation so far. */
export interface Episode {
  /** Everything said, also by the environment. */
  readonly messages: readonly Message[];
  /** What the model said, token for token. */
  readonly turns: readonly Turn[];
  /** The model's last answer. */
  readonly answer: ParsedResponse;
  /** Why it ended; undefined while it has not. */
  readonly stop: StopKind | undefined;
  /** What the replies have added up to. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** What the environment says to an answer. */
export interface Reply {
  /** What is added to the conversation before the model speaks again. None, or an empty list: the conversation is over. */
  readonly messages?: readonly Message[];
  /** Why it is over, where it is. Default `done`. */
  readonly stop?: StopKind;
  /** Added to the reward of the whole. Default 0. */
  readonly reward?: number | boolean;
  /** Added to the metrics of the whole, by name. */
  readonly metrics?: Readonly<Record<string, number>>;
}

/** Bounds of one conversation; each ends it, with what was said so far, and is counted as `stop/<name>`. */
export interface ConversationLimits {
  /** Answers of the model: an integer ≥ 1. Default 10. */
  readonly maxTurns?: number;
  /** Tokens of the whole, prompts included. Default 65 536. */
  readonly maxTokens?: number;
  /** Tokens sampled. Default: no limit. */
  readonly maxSampledTokens?: number;
  /** Milliseconds after which no new answer is asked for. Default: no limit. */
  readonly maxMs?: number;
}

/** Options of `conversation`. */
export interface ConversationOptions<T> extends ConversationLimits {
  /** Writes prompts and reads answers. */
  readonly renderer: Renderer;
  /** How the conversation begins. */
  readonly start: (task: T) => readonly Message[];
  /** What the environment says to an answer, at once or later. */
  readonly reply: (
    episode: Episode,
    task: T,
    context: RolloutContext,
  ) => Reply | undefined | ObservableInput<Reply | undefined>;
  /** How good the whole was, beside the rewards of the replies. Default 0. */
  readonly reward?: (episode: Episode, task: T) => Graded | ObservableInput<Graded>;
  /** How to sample; the renderer's stop sequences stop unless others are given. `maxTokens` is of one answer. */
  readonly samplingParams?: SamplingParams;
  /** Whether answers that cannot be read take no part in training. Default: no. */
  readonly maskParseErrors?: boolean;
  /** Whether a conversation that a limit ended has a reward of at most 0. Default: no. */
  readonly noRewardAtLimit?: boolean;
  /** For `maxMs`. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

interface State extends Episode {
  readonly prompt: Turn['prompt'];
  readonly reward: number;
  readonly sampled: number;
}

/**
 * Tasks that take several turns: the model speaks, the environment replies, until one of them is done or a limit is reached.
 *
 * ```ts
 * const agent = conversation<Riddle>({
 *   renderer,
 *   start: ({ riddle }) => [{ role: 'user', content: riddle }],
 *   reply: ({ answer, turns }, { solution }) =>
 *     answer.text === solution ? { reward: 1 } : { messages: [{ role: 'user', content: 'No. Try again.' }] },
 *   maxTurns: 3,
 * });
 * ```
 * What was sampled is never encoded again: each prompt extends the one before it and its answer, token for token, where the
 * renderer's family allows it. A throw of `reply` or `reward` fails the rollout.
 */
export function conversation<T, S = SamplingClient>(options: ConversationOptions<T>): RolloutHook<T, S> {
  const { renderer, maxTurns = 10, maxTokens = 65_536, maxSampledTokens = Infinity, maxMs = Infinity } = options;
  const { samplingParams = {}, scheduler = asyncScheduler } = options;
  checkRenderer('conversation', renderer, 'buildGenerationPrompt');
  checkIntegers({ maxTurns }, 1);
  for (const [name, value] of Object.entries({ maxTokens, maxSampledTokens, maxMs })) {
    if (!(value > 0)) throw new RangeError(`${name} must be > 0, got ${value}`);
  }
  const params: SamplingParams = { stop: renderer.getStopSequences(), ...samplingParams };
  return (task, policy, context) =>
    defer((): Observable<Rollout> => {
      const startedMs = scheduler.now();
      /** How many tokens the next answer may have; 0 where there is no room for one. */
      const room = ({ prompt, sampled }: State) =>
        Math.max(0, Math.min(params.maxTokens ?? Infinity, maxTokens - prompt.length, maxSampledTokens - sampled));
      const limit = (state: State): StopKind | undefined => {
        if (state.turns.length >= maxTurns) return 'max_turns';
        if (state.sampled >= maxSampledTokens) return 'max_sampled_tokens';
        if (state.prompt.length >= maxTokens) return 'max_tokens';
        return scheduler.now() - startedMs >= maxMs ? 'timeout' : undefined;
      };
      /** Which limit cut an answer off. */
      const whichLimit = ({ prompt, sampled }: State, maxAnswer: number): StopKind => {
        if (maxAnswer === maxSampledTokens - sampled) return 'max_sampled_tokens';
        return maxAnswer === maxTokens - prompt.length ? 'max_tokens' : 'length';
      };
      const speak = (state: State): Observable<State> => {
        const maxAnswer = room(state);
        return policy
          .turn(state.prompt, { ...params, ...(maxAnswer === Infinity ? {} : { maxTokens: maxAnswer }) })
          .pipe(
            concatMap((turn) => heard(options, state, turn, task, context)),
            map((next) => {
              if (next.stop === undefined) return { ...next, stop: limit(next) };
              return next.stop === 'length' ? { ...next, stop: whichLimit(state, maxAnswer) } : next;
            }),
          );
      };
      const messages = options.start(task);
      const first: State = {
        ...{ messages, turns: [], answer: EMPTY_ANSWER, stop: undefined, metrics: {}, reward: 0, sampled: 0 },
        prompt: renderer.buildGenerationPrompt(messages),
      };
      if (first.prompt.length >= maxTokens) {
        throw new RangeError(
          `the first prompt has ${first.prompt.length} tokens, and the conversation may have ${maxTokens}`,
        );
      }
      return speak(first).pipe(
        expand((state) => (state.stop === undefined ? speak(state) : EMPTY)),
        last(),
        concatMap((state) => finished(options, state, task)),
      );
    });
}

const EMPTY_ANSWER: ParsedResponse = {
  ...{ message: { role: 'assistant', content: '' }, text: '', thinking: '', toolCalls: [], unparsedToolCalls: [] },
  termination: 'malformed',
};

/** The state after an answer and the reply to it. */
function heard<T>(
  options: ConversationOptions<T>,
  state: State,
  turn: Turn,
  task: T,
  context: RolloutContext,
): Observable<State> {
  const { renderer, reply, maskParseErrors = false } = options;
  const answer = renderer.parse(turn.sequence.tokens);
  const malformed = answer.termination === 'malformed';
  const kept = malformed && maskParseErrors ? { ...turn, masked: true } : turn;
  const spoken: State = {
    ...state,
    answer,
    turns: [...state.turns, kept],
    messages: [...state.messages, answer.message],
    sampled: state.sampled + turn.sequence.tokens.length,
  };
  // Without its end the next turn has no place to begin.
  if (malformed) return of({ ...spoken, stop: turn.sequence.stopReason === 'length' ? 'length' : 'parse_error' });
  return defer(() => toObservable<Reply | undefined>(reply(spoken, task, context))).pipe(
    map((given): State => {
      const { messages: added = [], metrics = {}, stop } = given ?? {};
      const reward = numberOf(given?.reward ?? 0, 'the reward of a reply', 'a finite number, true or false');
      const told: State = { ...spoken, reward: state.reward + reward, metrics: summed(state.metrics, metrics) };
      if (added.length === 0 || stop !== undefined) return { ...told, stop: stop ?? 'done' };
      const exchange = {
        messages: state.messages,
        prompt: turn.prompt,
        tokens: turn.sequence.tokens,
        reply: answer.message,
      };
      const { prompt } = continuePrompt(renderer, exchange, [...state.messages, answer.message, ...added]);
      return { ...told, prompt, messages: [...told.messages, ...added] };
    }),
  );
}

function summed(
  sums: Readonly<Record<string, number>>,
  more: Readonly<Record<string, number>>,
): Record<string, number> {
  const added = new Map(Object.entries(sums));
  for (const [name, value] of Object.entries(more)) added.set(name, (added.get(name) ?? 0) + value);
  return Object.fromEntries(added);
}

function finished<T>(options: ConversationOptions<T>, state: State, task: T): Observable<Rollout> {
  const { reward = () => 0, noRewardAtLimit = false } = options;
  const { prompt: _, sampled: __, reward: earned, ...episode } = state;
  return graded(() => reward(episode, task)).pipe(
    map(({ reward: last, metrics }) => {
      const total = earned + last;
      return {
        turns: state.turns,
        text: state.answer.text,
        reward: noRewardAtLimit && state.stop !== 'done' ? Math.min(total, 0) : total,
        metrics: { ...state.metrics, [`stop/${state.stop}`]: 1, ...metrics },
        logs: { messages: state.messages, stop: state.stop },
      };
    }),
  );
}
