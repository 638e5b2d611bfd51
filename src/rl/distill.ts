import type { OperatorFunction } from 'rxjs';
import type { Message } from '../chat/renderers/core/Message.js';
import type { Renderer } from '../chat/renderers/core/Renderer.js';
import type { SamplingClient } from '../client/SamplingClient.js';
import type { Sampleable } from '../operators/sampling/sampleFrom.js';
import type { ModelInput } from '../wire/modelInput.js';
import type { RlTrainer } from './learning/GrpoOptions.js';
import { reinforce, type ReinforceOptions } from './reinforce.js';
import type { RlStep } from './learning/rlStep.js';
import { singleTurn } from './environments/singleTurn.js';
import { whereTokenizersAgree } from './environments/sameTokenizer.js';
import { taught, type TaughtOptions, type Teachers, type WeightedTeacher } from './environments/taught.js';

/** Options of `distill`. */
export interface DistillOptions<T, S extends Sampleable = SamplingClient>
  extends TaughtOptions<T>, Omit<ReinforceOptions<T, S>, 'advantages' | 'groupReward'> {
  /** Writes prompts and knows where answers stop. */
  readonly renderer: Renderer;
  /** What is asked: the user's words, a conversation, or tokens. Default: the task itself, where it is one of these. */
  readonly prompt?: (task: T) => string | readonly Message[] | ModelInput;
}

/**
 * On-policy distillation in one call: the student answers prompts, and a teacher grades every token of its answers.
 *
 * ```ts
 * prompts.pipe(distill(trainer, { teacher, renderer, group: 4, groupsPerBatch: 16, samplingParams: { maxTokens: 256 } }))
 * ```
 * {@link reinforce} over {@link taught} answers of one turn; `env/all/teacher_kl` of a step says how far apart the two are. Behaves as
 * `reinforce` on errors, completion and unsubscribing. A teacher whose tokenizer is not the student's is a `ValidationError`, before
 * anything is sampled.
 */
export function distill<T, S extends Sampleable = SamplingClient>(
  trainer: RlTrainer<S>,
  options: DistillOptions<T, S>,
): OperatorFunction<T, RlStep<T>> {
  const { renderer, prompt = (task: T) => task as string, samplingParams = {} } = options;
  const answers = singleTurn<T, S>({ renderer, prompt, reward: () => 0, samplingParams });
  const learn = reinforce<T, S>(trainer, taught<T, S>(answers, options), {
    ...options,
    advantages: { method: 'given' },
  });
  const { teacher } = options;
  // Teachers that depend on the task are not known yet.
  const teachers =
    typeof teacher === 'function' ? [] : isList(teacher) ? teacher.map((each) => each.teacher) : [teacher];
  return (source) => whereTokenizersAgree(renderer.tokenizer, teachers, learn(source));
}

const isList = (teacher: Teachers): teacher is readonly WeightedTeacher[] => Array.isArray(teacher);
