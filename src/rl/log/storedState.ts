import { isRight } from 'fp-ts/lib/Either.js';
import { type ModelInput, ModelInputCodec } from '../../wire/modelInput.js';
import { BadRowError } from '../../sources/SourceError.js';
import type { RlResume } from '../learning/rlStep.js';
import type { Trajectory, Turn } from '../sampling/rollout.js';
import type { Pace } from '../pacing/Pace.js';

/** What lies beside a checkpoint: where the run stands, and how long the log of its rollouts was. */
export interface StoredState {
  readonly resume: RlResume;
  readonly rolloutsBytes: number;
}

const VERSION = 1;

/** The state as JSON. Prompts that turns share are written once. */
export function encodeState({ resume, rolloutsBytes }: StoredState): string {
  const finished = resume.finished.map((group) => {
    const prompts = new Map<ModelInput, number>();
    const placeOf = (prompt: ModelInput): number => {
      if (!prompts.has(prompt)) prompts.set(prompt, prompts.size);
      return prompts.get(prompt)!;
    };
    const trajectories = group.trajectories.map((trajectory) => ({
      ...trajectory,
      turns: trajectory.turns.map(({ prompt, sequence, advantage, ...turn }) => ({
        ...turn,
        prompt: placeOf(prompt),
        ...(advantage === undefined
          ? {}
          : { advantage: typeof advantage === 'number' ? advantage : Array.from(advantage) }),
        sequence: {
          ...sequence,
          topkLogprobs: undefined,
          tokens: Array.from(sequence.tokens),
          logprobs: Array.from(sequence.logprobs!),
        },
      })),
    }));
    return { ...group, trajectories, prompts: Array.from(prompts.keys(), (prompt) => ModelInputCodec.encode(prompt)) };
  });
  return JSON.stringify({ version: VERSION, rolloutsBytes, resume: { ...resume, finished } });
}

type StoredTurn = Omit<Turn, 'prompt' | 'sequence'> & {
  readonly prompt: number;
  readonly sequence: Omit<Turn['sequence'], 'tokens' | 'logprobs'> & {
    readonly tokens: readonly number[];
    readonly logprobs: readonly number[];
  };
};
interface StoredGroup extends Omit<RlResume['finished'][number], 'trajectories'> {
  readonly prompts: readonly unknown[];
  readonly trajectories: readonly (Omit<Trajectory, 'turns'> & { readonly turns: readonly StoredTurn[] })[];
}

interface Stored {
  readonly version: number;
  readonly rolloutsBytes: number;
  readonly resume: Omit<RlResume, 'finished'> & { readonly finished: readonly StoredGroup[] };
}

/** @throws BadRowError if it is not what `encodeState` wrote. */
export function decodeState(text: string, path: string): StoredState {
  let stored: Stored;
  try {
    stored = JSON.parse(text) as Stored;
  } catch (error) {
    // It is one line.
    throw new BadRowError(path, 1, `the state of a checkpoint is damaged after ${text.length} characters`, {
      cause: error,
    });
  }
  if (stored?.version !== VERSION)
    throw new BadRowError(path, 1, `it has version ${stored?.version}, this release reads ${VERSION}`);
  try {
    return decoded(stored, path);
  } catch (error) {
    if (error instanceof BadRowError) throw error;
    throw new BadRowError(path, 1, 'the state of a checkpoint is damaged', { cause: error });
  }
}

function decoded(stored: Stored, path: string): StoredState {
  const finished = stored.resume.finished.map(({ prompts, ...group }) => {
    const inputs = prompts.map((prompt) => {
      const input = ModelInputCodec.decode(prompt);
      if (isRight(input)) return input.right;
      throw new BadRowError(path, 1, `the prompt of group ${group.order} cannot be read`);
    });
    const trajectories = group.trajectories.map((trajectory) => ({
      ...trajectory,
      turns: trajectory.turns.map(({ prompt, sequence, ...turn }) => ({
        ...turn,
        prompt: inputs[prompt]!,
        sequence: {
          ...sequence,
          tokens: Int32Array.from(sequence.tokens),
          logprobs: Float32Array.from(sequence.logprobs),
        },
      })),
    }));
    return { ...group, trajectories };
  });
  return { rolloutsBytes: stored.rolloutsBytes, resume: { ...stored.resume, finished } };
}

/** The file with the state of the checkpoint after `steps` steps. */
export const stateFile = (steps: number): string => `rl-state-${String(steps).padStart(6, '0')}.json`;

/** Resume state to save with the weights of step `steps`, which contain the groups before `next`. */
export function resumeState({ finished }: Pace, steps: number, next: number): RlResume {
  const waiting = [...finished.values()]
    // Sampled by weights that this checkpoint does not have yet: such a group is sampled again.
    .filter(({ order, trajectories }) => order >= next && trajectories.every((each) => each.step <= steps))
    .sort((a, b) => a.order - b.order);
  return { steps, next, finished: waiting.map(({ task: _, ...group }) => group) };
}
