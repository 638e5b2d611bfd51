import { lastValueFrom, take, toArray, type Observable } from 'rxjs';
import type { SamplingClient } from '../../../client/index.js';
import type { Agent, Group, RlEvent } from '../../../rl/index.js';
import { plainLine } from '../../../support/plainText.js';
import { CliError } from '../../CliError.js';
import { note, type Context } from '../../context.js';
import { printProperties } from '../../output/print.js';
import type { TaskRow } from '../../../rl/index.js';

export interface CalibrateOptions {
  readonly tasks: Observable<TaskRow>;
  readonly agent: Agent<TaskRow>;
  readonly sampler: SamplingClient;
  readonly group: number;
  /** How many tasks are tried. */
  readonly groups: number;
  readonly groupsPerBatch: number;
  /** Steps of the run that is asked about. */
  readonly steps: number;
  readonly seed: number;
  /** Tokens to text. */
  readonly decode: (tokens: ArrayLike<number>) => string;
}

/** Tries a few tasks, trains nothing, and says whether there is something to learn and what a run would sample. */
export async function calibrate(context: Context, options: CalibrateOptions): Promise<void> {
  const { tasks, agent, sampler, group, groups, groupsPerBatch, steps, seed, decode } = options;
  const { rollouts } = await import('../../../rl/index.js');
  const onEvent = (event: RlEvent) => {
    if (event.type === 'rl-warning') note(context, `Warning: ${event.message}`);
  };
  const sampled = await lastValueFrom(
    tasks.pipe(take(groups), rollouts(agent, { policy: sampler, group, seed, onEvent }), toArray()),
  );
  const found = summarize(sampled);
  const answers = someAnswers(sampled, decode);
  const perStep = {
    prompt: found.promptTokens * groupsPerBatch * group,
    sampled: found.sampledTokens * groupsPerBatch * group,
  };
  const whole = (value: number) => Math.round(value).toLocaleString('en-US');
  const percent = (value: number) => `${Math.round(100 * value)} %`;
  printProperties(
    context,
    [
      ['Tasks tried', `${sampled.length}, ${group} answers each`],
      ['Reward', `${found.reward.toFixed(3)} on average, from ${found.least} to ${found.most}`],
      ['Spread within groups', `${found.spread.toFixed(3)} (standard deviation, on average)`],
      [
        'Groups that teach',
        `${percent(found.mixed)} mixed, ${percent(found.allGood)} all good, ${percent(found.allBad)} all bad`,
      ],
      ['Failed rollouts', percent(found.failed)],
      [
        'Tokens of an answer',
        `${whole(found.sampledTokens)} on average, ${whole(found.longest)} at most, ${percent(found.cutOff)} cut off`,
      ],
      ['Tokens per step', `${whole(perStep.prompt)} of prompts, ${whole(perStep.sampled)} sampled`],
      [
        `Tokens of ${steps} steps`,
        `${whole(perStep.prompt * steps)} of prompts, ${whole(perStep.sampled * steps)} sampled`,
      ],
    ],
    () => ({
      tasks: sampled.length,
      group,
      ...found,
      tokens_per_step: perStep,
      steps,
      answers,
    }),
  );
  if (context.format === 'table') {
    context.stdout.write('\nSome answers, the best and the worst of a task:\n');
    for (const { reward, text } of answers)
      context.stdout.write(`  ${reward.toFixed(3)}  ${plainLine(text, LONGEST_SHOWN)}\n`);
  }
  if (found.mixed === 0) {
    throw new CliError('No group has answers of different reward: there is nothing to learn from these tasks', {
      details:
        found.allBad >= found.allGood
          ? 'They are too hard for this model, or the reward never pays. Try easier tasks, or a reward with steps in between.'
          : 'They are too easy for this model. Try harder tasks.',
    });
  }
}

/** Two answers are shown for each of the first tasks. */
const TASKS_SHOWN = 3;
const LONGEST_SHOWN = 200;

/** The best and the worst answer of the first tasks. */
function someAnswers(
  groups: readonly Group<TaskRow>[],
  decode: CalibrateOptions['decode'],
): readonly { readonly reward: number; readonly text: string }[] {
  const shown = groups.filter(({ trajectories }) => trajectories.length > 0).slice(0, TASKS_SHOWN);
  return shown.flatMap(({ trajectories }) => {
    const sorted = [...trajectories].sort((a, b) => b.reward - a.reward);
    return [...new Set([sorted[0]!, sorted.at(-1)!])].map(({ reward, turns }) => ({
      reward,
      text: turns.map(({ sequence }) => decode(sequence.tokens)).join(' … '),
    }));
  });
}

interface Found {
  readonly reward: number;
  readonly least: number;
  readonly most: number;
  readonly spread: number;
  readonly mixed: number;
  readonly allGood: number;
  readonly allBad: number;
  readonly failed: number;
  readonly promptTokens: number;
  readonly sampledTokens: number;
  readonly longest: number;
  readonly cutOff: number;
}

/** What the cookbook calls good: a reward of at least a half. */
const GOOD = 0.5;

/** Sums groups up. All means go over all rollouts that succeeded. @throws CliError if none did */
function summarize(groups: readonly Group<TaskRow>[]): Found {
  const all = groups.flatMap(({ trajectories }) => trajectories);
  if (all.length === 0) {
    throw new CliError('Every rollout failed', { details: groups[0]?.failures[0]?.message ?? 'there was no task' });
  }
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
  const rewards = all.map(({ reward }) => reward);
  const within = groups
    .map(({ trajectories }) => trajectories.map(({ reward }) => reward))
    .filter(({ length }) => length > 0);
  const constant = within.filter((each) => each.every((value) => value === each[0]));
  const share = (part: readonly unknown[]): number => part.length / within.length;
  const sampled = all.map(({ turns }) => turns.reduce((sum, { sequence }) => sum + sequence.tokens.length, 0));
  return {
    reward: mean(rewards),
    least: Math.min(...rewards),
    most: Math.max(...rewards),
    spread: mean(within.map((each) => Math.sqrt(mean(each.map((value) => (value - mean(each)) ** 2))))),
    mixed: share(within.filter((each) => !constant.includes(each))),
    allGood: share(constant.filter((each) => each[0]! >= GOOD)),
    allBad: share(constant.filter((each) => each[0]! < GOOD)),
    failed:
      groups.reduce((sum, { failures }) => sum + failures.length, 0) /
      groups.reduce((sum, { failures, trajectories }) => sum + failures.length + trajectories.length, 0),
    promptTokens: mean(all.map(({ turns }) => turns.reduce((sum, { prompt }) => sum + prompt.length, 0))),
    sampledTokens: mean(sampled),
    longest: Math.max(...sampled),
    cutOff: mean(all.map(({ turns }) => (turns.at(-1)!.sequence.stopReason === 'length' ? 1 : 0))),
  };
}
