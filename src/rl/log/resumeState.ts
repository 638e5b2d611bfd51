import type { RlResume } from '../learning/rlStep.js';
import type { Pace } from '../pacing/Pace.js';

/** Where the run stands beside weights of so many steps, of which the groups before `next` are part. */
export function resumeState({ finished }: Pace, steps: number, next: number): RlResume {
  const waiting = [...finished.values()]
    // Sampled by weights that this checkpoint does not have yet: such a group is sampled again.
    .filter(({ order, trajectories }) => order >= next && trajectories.every((each) => each.step <= steps))
    .sort((a, b) => a.order - b.order);
  return { steps, next, finished: waiting.map(({ task: _, ...group }) => group) };
}
