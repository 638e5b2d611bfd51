import type { Message } from '../../chat/renderers/core/Message.js';
import type { Renderer } from '../../chat/renderers/core/Renderer.js';
import type { SamplingClient } from '../../client/SamplingClient.js';
import { singleTurn } from '../../rl/environments/singleTurn.js';
import type { GroupAgent } from '../../rl/sampling/rollout.js';
import type { ModelInput } from '../../wire/modelInput.js';
import { promptOf } from '../../chat/datum/taskText.js';

/** Options of `answers`. */
export interface AnswersOptions<T> {
  /** Writes prompts and reads answers. */
  readonly renderer: Renderer;
  /** What is asked. Default: the task's `messages`, `prompt`, `question` or `input`, or the task if it is a string. */
  readonly prompt?: (task: T) => string | readonly Message[] | ModelInput;
}

/** The plainest rollout: one answer, left to scorers. All answers to a task are sampled in one request. */
export function answers<T, S = SamplingClient>({ renderer, prompt = promptOf }: AnswersOptions<T>): GroupAgent<T, S> {
  return singleTurn<T, S>({ renderer, prompt, reward: () => 0 });
}
