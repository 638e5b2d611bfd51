import type { ModelInput } from '../../wire/modelInput.js';
import type { Turn } from '../sampling/rollout.js';

/** What a run of reinforcement learning tells while it runs. Nothing waits without saying for what. */
export type RlEvent =
  | {
      /** Nothing new starts until something else has happened: see `for`. */
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
  | {
      /** A group of rollouts starts. */
      readonly type: 'group-admitted';
      /** The group's number, counted from 0 in the order of the tasks. */
      readonly order: number;
      /** The step of the weights it samples from. */
      readonly step: number;
    }
  | {
      /** All rollouts of a group have ended. */
      readonly type: 'group-finished';
      /** The group's number. */
      readonly order: number;
      /** The rewards of its rollouts, in order. */
      readonly rewards: readonly number[];
      /** How many of its rollouts failed for good. */
      readonly failures: number;
      /** How long the group took, in milliseconds. */
      readonly durationMs: number;
    }
  | {
      /** A rollout starts, or starts again after a failure. */
      readonly type: 'rollout-started';
      /** The group's number. */
      readonly order: number;
      /** The rollout's number in the group, counted from 0. */
      readonly index: number;
      /** 1 for the first attempt. */
      readonly attempt: number;
    }
  | {
      /** A rollout has ended. */
      readonly type: 'rollout-finished';
      /** The group's number. */
      readonly order: number;
      /** The rollout's number in the group, counted from 0. */
      readonly index: number;
      /** Its reward. */
      readonly reward: number;
      /** How many turns the model took. */
      readonly turns: number;
      /** How many tokens it sampled. */
      readonly tokens: number;
    }
  | ({
      /** The group's number. */
      readonly order: number;
    } & SampleEvent)
  | {
      /** A rollout failed. */
      readonly type: 'rollout-failed';
      /** The group's number. */
      readonly order: number;
      /** The rollout's number in the group, counted from 0. */
      readonly index: number;
      /** 1 for the first attempt. */
      readonly attempt: number;
      /** Whether it is given up; otherwise it is tried again. */
      readonly final: boolean;
      /** Why it failed. */
      readonly error: unknown;
    }
  | {
      /** A group is not trained on. It still counts in the metrics. */
      readonly type: 'group-dropped';
      /** The group's number. */
      readonly order: number;
      /** Why it was dropped. */
      readonly reason: DropReason;
    }
  | {
      /** No group of a batch taught anything: there was no optimizer step, and the next tasks are taken. */
      readonly type: 'batch-skipped';
      /** How many groups it had. */
      readonly groups: number;
      /** Why it was skipped. */
      readonly reason: string;
    }
  | {
      /** At the end: groups after the last step, none of which taught anything, so that no step counts them. */
      readonly type: 'groups-untaught';
      /** How many groups these are. */
      readonly groups: number;
      /** How many answers they have. */
      readonly answers: number;
      /** The mean reward of these answers. */
      readonly reward: number;
      /** Their metrics, under the names that steps have. */
      readonly metrics: Readonly<Record<string, number>>;
    }
  | {
      /** New weights are available for sampling. */
      readonly type: 'policy-published';
      /** How many steps they hold. */
      readonly step: number;
    }
  | {
      /** Something that usually is a mistake. */
      readonly type: 'rl-warning';
      /** A stable word for the kind of warning. */
      readonly code: RlWarningCode;
      /** The warning in words. */
      readonly message: string;
    };

/** What happens to a sample that a rollout asked for. */
export type SampleEvent = {
  /** The rollout's place in its group; undefined for a request of the whole group. */
  readonly index: number | undefined;
  /** Which of the rollout's samples it is, counted from 0. */
  readonly sample: number;
} & (
  | {
      /** A sample was asked for. */
      readonly type: 'sample-started';
      /** What it continues. */
      readonly prompt: ModelInput;
    }
  | {
      /** A sample has arrived. */
      readonly type: 'sample-finished';
      /** The turns it became. */
      readonly turns: readonly Turn[];
      /** The service's id of the request. */
      readonly requestId: string | undefined;
    }
  | {
      /** A sample failed, or was abandoned, which has no error. */
      readonly type: 'sample-failed';
      /** Why it failed. */
      readonly error?: unknown;
      /** The service's id of the request. */
      readonly requestId: string | undefined;
    }
);

/** Why a group is not trained on: all rewards alike, or too few rollouts left. */
export type DropReason = 'constant' | 'too-few';

/** The kinds of `rl-warning`. */
export type RlWarningCode =
  /** A trajectory needs more than one datum. */
  | 'split-datums'
  /** Sampler and trainer disagree about the same weights. */
  | 'sampler-trainer-gap'
  /** Rollouts failed: the first of each kind, and at the end how many there were. */
  | 'rollouts-failed'
  /** Groups that `rollouts` finished have not reached `grpo`. */
  | 'groups-missing';

/** Hears what happens. A throw is swallowed: a listener cannot hurt a run. */
export type RlListener = (event: RlEvent) => void;
