import { concatMap, defer, map, type Observable, type ObservableInput } from 'rxjs';
import type { Message } from '../../chat/renderers/core/Message.js';
import type { ParsedResponse, Renderer } from '../../chat/renderers/core/Renderer.js';
import type { SamplingClient } from '../../client/SamplingClient.js';
import { checkRenderer } from '../../support/checks.js';
import type { ModelInput } from '../../wire/modelInput.js';
import type { SamplingParams } from '../../wire/sampling.js';
import { graded } from '../rewards/graded.js';
import { givenTo } from '../sampling/ownPlace.js';
import type { Graded, GroupAgent, Rollout, RolloutHook, Turn } from '../sampling/rollout.js';

/** What was said in answer to a task. */
export interface Answer extends ParsedResponse {
  /** Whether it ended at the token limit. */
  readonly cutOff: boolean;
  /** The sampled turn: its prompt, tokens and logprobs. */
  readonly turn: Turn;
}

/** Options of `singleTurn`. */
export interface SingleTurnOptions<T> {
  /** Writes prompts and reads answers. */
  readonly renderer: Renderer;
  /** What is asked: the user's words, a conversation, or tokens. */
  readonly prompt: (task: T) => string | readonly Message[] | ModelInput;
  /** How good an answer is: a number, or a number with metrics; at once or later. Use `weightedRewards` for several. */
  readonly reward: (answer: Answer, task: T) => Graded | ObservableInput<Graded>;
  /** How to sample; the renderer's stop sequences stop unless others are given. */
  readonly samplingParams?: SamplingParams;
}

/**
 * Tasks that take one answer and a grader. All answers of a group are sampled in one request.
 *
 * ```ts
 * const agent = singleTurn<Fact>({
 *   renderer,
 *   prompt: ({ question }) => question,
 *   reward: ({ text }, { answer }) => (text === answer ? 1 : 0),
 *   samplingParams: { maxTokens: 32 },
 * });
 * ```
 * A grader that throws or gives no finite number costs its own answer only, and a warning says where. `true` counts as 1, `false` as 0.
 */
export function singleTurn<T, S = SamplingClient>(options: SingleTurnOptions<T>): GroupAgent<T, S> {
  const { renderer, prompt, reward, samplingParams = {} } = options;
  checkRenderer('singleTurn', renderer, 'buildGenerationPrompt');
  const params: SamplingParams = { stop: renderer.getStopSequences(), ...samplingParams };
  const what = givenTo(singleTurn, 'the reward of singleTurn');
  const inputOf = (task: T): ModelInput => {
    const asked = prompt(task);
    if (typeof asked === 'string') return renderer.buildGenerationPrompt([{ role: 'user', content: asked }]);
    return 'chunks' in asked ? asked : renderer.buildGenerationPrompt(asked);
  };
  const grade = (turn: Turn, task: T): Observable<Rollout> =>
    defer(() => {
      const parsed = renderer.parse(turn.sequence.tokens);
      const cutOff = turn.sequence.stopReason === 'length';
      return graded(() => reward({ ...parsed, cutOff, turn }, task), what).pipe(
        map(({ reward: value, metrics }) => ({
          turns: [turn],
          reward: value,
          text: parsed.text,
          metrics: { 'stop/length': cutOff ? 1 : 0, ...metrics },
          logs: { text: parsed.text },
        })),
      );
    });
  const one: RolloutHook<T, S> = (task, policy) =>
    policy.turn(inputOf(task), params).pipe(concatMap((turn) => grade(turn, task)));
  const group: GroupAgent<T, S>['group'] = (task, policy, { size }) => {
    const answers = policy.sample({ prompt: inputOf(task), numSamples: size, samplingParams: params });
    return Array.from({ length: size }, (_, index) =>
      answers.pipe(
        concatMap((turns) => {
          if (turns[index] === undefined) throw new Error(`the service gave ${turns.length} samples of ${size}`);
          return grade(turns[index], task);
        }),
      ),
    );
  };
  return Object.assign(one, { group });
}
