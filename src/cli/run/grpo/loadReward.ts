import { promptOf } from '../../../chat/datum/taskText.js';
import type { Message } from '../../../chat/renderers/core/Message.js';
import type { Renderer } from '../../../chat/renderers/core/Renderer.js';
import type { Agent, Reward, TaskRow } from '../../../rl/index.js';
import { messageOf } from '../../../support/messageOf.js';
import { CliError } from '../../CliError.js';
import { loadModule } from '../../loadModule.js';

/**
 * Loads the module of a reward and makes an agent of it. It exports how good an answer is, and may export `prompt(task)`, what is asked;
 * or instead of both `agent(renderer)`, which makes a custom agent. @throws CliError saying what it should export
 */
export async function loadReward(
  file: string,
  renderer: Renderer,
  sampling: { readonly maxTokens: number; readonly temperature?: number },
): Promise<Agent<TaskRow>> {
  const module = await loadModule(file);
  if (typeof module['agent'] === 'function')
    return (module['agent'] as (renderer: Renderer) => Agent<TaskRow>)(renderer);
  if (typeof module['default'] !== 'function') {
    throw new CliError(`${file} exports no reward`, {
      details: 'Export one as default: export default (answer, task) => (answer.text === task.answer ? 1 : 0)',
    });
  }
  const { singleTurn } = await import('../../../rl/index.js');
  return singleTurn<TaskRow>({
    renderer,
    prompt: typeof module['prompt'] === 'function' ? (module['prompt'] as typeof askedBy) : askedBy,
    reward: module['default'] as Reward,
    samplingParams: { ...sampling },
  });
}

function askedBy(task: TaskRow): string | readonly Message[] {
  try {
    return promptOf(task);
  } catch (error) {
    throw new CliError(messageOf(error), { details: 'A reward module may export prompt(task) to say what is asked.' });
  }
}
