import type { ModelInput } from '../../wire/modelInput.js';
import type { Turn } from '../sampling/rollout.js';

/** What a run of reinforcement learning tells while it runs. Nothing waits without saying for what. */
export type RlEvent =
  /** Nothing new is started until what it waits for has come. */
  | {
      readonly type: 'rl-waiting';
      /**
       * - `policy`: there is nothing to sample from yet
       * - `training`: as many groups are admitted beyond what was trained on as may be
       * - `concurrency`: as many rollouts are in flight as may be
       * - `rollouts`: the trainer has nothing to do, since the next batch lacks groups that are still being sampled
       */
      readonly for: 'policy' | 'training' | 'concurrency' | 'rollouts';
      /** Groups admitted so far; of `rollouts`, groups that have arrived. */
      readonly admitted: number;
      /** Of these, groups that training is done with; of `concurrency` without a trainer, groups that are finished. */
      readonly done: number;
    }
  | { readonly type: 'group-admitted'; readonly order: number; readonly step: number }
  | {
      readonly type: 'group-finished';
      readonly order: number;
      readonly rewards: readonly number[];
      readonly failures: number;
      readonly durationMs: number;
    }
  | { readonly type: 'rollout-started'; readonly order: number; readonly index: number; readonly attempt: number }
  | {
      readonly type: 'rollout-finished';
      readonly order: number;
      readonly index: number;
      readonly reward: number;
      readonly turns: number;
      readonly tokens: number;
    }
  | ({ readonly order: number } & SampleEvent)
  /** A rollout failed; `final` says whether it is tried again. */
  | {
      readonly type: 'rollout-failed';
      readonly order: number;
      readonly index: number;
      readonly attempt: number;
      readonly final: boolean;
      readonly error: unknown;
    }
  /** A group is not trained on. It still counts in the metrics. */
  | { readonly type: 'group-dropped'; readonly order: number; readonly reason: DropReason }
  /** No group of a batch taught anything: there was no optimizer step, and the next tasks are taken. */
  | { readonly type: 'batch-skipped'; readonly groups: number; readonly reason: string }
  /** New weights can be sampled from. */
  | { readonly type: 'policy-published'; readonly step: number }
  | { readonly type: 'rl-warning'; readonly code: RlWarningCode; readonly message: string };

/** What happens to a sample that a rollout asked for. */
export type SampleEvent = {
  /** The rollout's place in its group; undefined for a request of the whole group. */
  readonly index: number | undefined;
  /** Which of the rollout's samples it is, counted from 0. */
  readonly sample: number;
} & (
  | { readonly type: 'sample-started'; readonly prompt: ModelInput }
  | { readonly type: 'sample-finished'; readonly turns: readonly Turn[]; readonly requestId: string | undefined }
  /** Also a sample that nobody waits for any more; it has no error. */
  | { readonly type: 'sample-failed'; readonly error?: unknown; readonly requestId: string | undefined }
);

/** Why a group is not trained on: all rewards alike, or too few rollouts left. */
export type DropReason = 'constant' | 'too-few';

export type RlWarningCode = 'split-datums' | 'sampler-trainer-gap';

/** Hears what happens. A throw is swallowed: a listener cannot hurt a run. */
export type RlListener = (event: RlEvent) => void;
