import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Message } from '../../../chat/renderers/core/Message.js';
import type { Renderer } from '../../../chat/renderers/core/Renderer.js';
import type { Agent, Answer, Graded } from '../../../rl/index.js';
import { CliError } from '../../CliError.js';

/** A row of the file of tasks. */
export type TaskRow = Readonly<Record<string, unknown>>;

/** What a reward module may export. */
interface RewardModule {
  /** How good an answer is. */
  readonly default?: unknown;
  /** What is asked for a task. Default: its `messages`, `prompt` or `question`. */
  readonly prompt?: unknown;
  /** In place of both: makes an agent of one's own, given the renderer. */
  readonly agent?: unknown;
}

/** Loads a module of the user's. @throws CliError where there is none */
export async function loadModule(file: string): Promise<RewardModule> {
  if (!existsSync(file)) throw new CliError(`${file}: no such file`);
  return (await import(pathToFileURL(resolve(file)).href)) as RewardModule;
}

/** Loads the module of a reward and makes an agent of it. @throws CliError saying what it should export */
export async function loadReward(
  file: string,
  renderer: Renderer,
  sampling: { readonly maxTokens: number; readonly temperature?: number },
): Promise<Agent<TaskRow>> {
  const module = await loadModule(file);
  if (typeof module.agent === 'function') return (module.agent as (renderer: Renderer) => Agent<TaskRow>)(renderer);
  if (typeof module.default !== 'function') {
    throw new CliError(`${file} exports no reward`, {
      details: 'Export one as default: export default (answer, task) => (answer.text === task.answer ? 1 : 0)',
    });
  }
  const { singleTurn } = await import('../../../rl/index.js');
  return singleTurn<TaskRow>({
    renderer,
    prompt: typeof module.prompt === 'function' ? (module.prompt as typeof promptOf) : promptOf,
    reward: module.default as (answer: Answer, task: TaskRow) => Graded | PromiseLike<Graded>,
    samplingParams: { ...sampling },
  });
}

function promptOf(task: TaskRow): string | readonly Message[] {
  const { messages, prompt, question } = task;
  if (Array.isArray(messages)) return messages as readonly Message[];
  for (const text of [prompt, question]) if (typeof text === 'string') return text;
  throw new CliError('A task has none of messages, prompt and question', {
    details: `Its fields: ${Object.keys(task).join(', ')}. A reward module may export prompt(task) to say what is asked.`,
  });
}
