import { basename, relative } from 'node:path';
import {
  identity,
  lastValueFrom,
  type MonoTypeOperatorFunction,
  type Observable,
  ReplaySubject,
  takeUntil,
  tap,
} from 'rxjs';
import type { ServiceClient, TrainingClient } from '../../client/index.js';
import { costText, Spending } from './Spending.js';
import type { BudgetSpent, Cost } from '../../evals/index.js';
import type { Dashboard } from '../../dashboard/index.js';
import type { Step } from '../../operators/step.js';
import type { Checkpoint } from '../../operators/trainingBatch.js';
import type { ResumePoint } from '../../sources/resumeFrom.js';
import type { SourceEvent } from '../../sources/index.js';
import { CliError } from '../CliError.js';
import { INTERRUPTED, note, type Context } from '../context.js';
import { shellWord } from '../output/format.js';
import { printProperties } from '../output/print.js';
import type { RunConfig, RunPlan } from './runFolder.js';

/** What a run came to. */
export interface Outcome {
  readonly last: Step | undefined;
  readonly checkpoint: Checkpoint | undefined;
  readonly interrupted: boolean;
  /** What the run has cost, and why it ended early where a budget ended it. */
  readonly cost: Cost | undefined;
  readonly spent: BudgetSpent | undefined;
}

/** Adds what the run has cost to its steps. */
export type Counted = <T extends Step>() => MonoTypeOperatorFunction<T>;

export interface FollowOptions {
  readonly plan: Pick<RunPlan<Pick<RunConfig, 'data'>>, 'config' | 'folder' | 'dashboard' | 'spending'>;
  /** The base model, for its prices. */
  readonly model: string;
  readonly totalSteps: number;
  readonly resume: ResumePoint;
  /**
   * The steps, once they are in the log; `stop$` ends the data, so that steps in flight are finished and the last one is saved.
   * `counted` adds the cost to a step, before it is logged.
   */
  readonly steps: (stop$: Observable<void>, counted: Counted) => Observable<Step>;
  /** What is wrong where not one step came of the data. Default: that it holds nothing to train on. */
  readonly nothing?: ConstructorParameters<typeof CliError>;
  /** Tokens to text, for the dashboard. Default: the numbers. */
  readonly decode?: (tokens: ArrayLike<number>) => string;
  /** How the data is read, for the progress bar. */
  readonly source$?: Observable<SourceEvent>;
}

/**
 * Runs the steps with a log, a progress bar and perhaps a dashboard. The first Ctrl-C finishes and saves, the second one stops at once.
 * @throws CliError where not one step came of the data
 */
export async function followRun(
  context: Context,
  service: ServiceClient,
  {
    plan,
    model,
    totalSteps,
    resume,
    steps,
    decode,
    source$,
    nothing = [`${plan.config.data} holds nothing to train on`],
  }: FollowOptions,
): Promise<Outcome> {
  const { progressBar } = await import('../../sinks/index.js');
  const { withCost } = await import('../../evals/index.js');
  const stop$ = new ReplaySubject<void>(1);
  const abort$ = new ReplaySubject<void>(1);
  let presses = 0;
  let last: Step | undefined;
  let checkpoint: Checkpoint | undefined = resume.checkpoint;
  const listening = context.interrupted$.subscribe(() => {
    presses++;
    if (presses === 1)
      note(context, 'Finishing the steps in flight and saving a checkpoint; Ctrl-C again stops at once.');
    (presses === 1 ? stop$ : abort$).next();
  });
  const spending = await Spending.open(context, service, { folder: plan.folder, model }, plan.spending);
  let spent: BudgetSpent | undefined;
  const counting = spending.spent$.subscribe((found) => {
    spent = found;
    note(context, `Stopping: ${found.reason}. Steps in flight are finished, and a checkpoint is saved.`);
    stop$.next();
  });
  const dashboard =
    plan.dashboard === undefined ? undefined : await openDashboard(context, service, plan.dashboard, decode);
  const shown: MonoTypeOperatorFunction<Step> = dashboard?.showSteps(basename(plan.folder)) ?? identity;
  const bar: MonoTypeOperatorFunction<Step> = progressBar({
    total: totalSteps,
    events$: service.events$,
    cost$: spending.cost$,
    stream: context.stderr,
    ...(source$ === undefined ? {} : { source$ }),
  });
  try {
    await lastValueFrom(
      steps(stop$, () => withCost(spending.cost$)).pipe(
        shown,
        bar,
        tap((step) => {
          last = step;
          checkpoint = step.checkpoint ?? checkpoint;
        }),
        takeUntil(abort$),
      ),
      { defaultValue: undefined },
    );
  } finally {
    listening.unsubscribe();
    counting.unsubscribe();
    spending.close();
    await dashboard?.close();
  }
  if (presses > 1) await service.destroy();
  // A run that was finished before takes no step either.
  if (last === undefined && presses === 0 && resume.steps === 0) throw new CliError(...nothing);
  const early = (last?.index ?? -1) + 1 < totalSteps;
  return {
    last,
    checkpoint,
    interrupted: presses > 0 && early,
    cost: spending.newest,
    spent: early ? spent : undefined,
  };
}

async function openDashboard(
  context: Context,
  service: ServiceClient,
  port: number | true,
  decode: FollowOptions['decode'],
): Promise<Dashboard> {
  const { serveDashboard } = await import('../../dashboard/index.js');
  const dashboard = await serveDashboard(
    { service },
    {
      port: port === true ? 0 : port,
      ...(decode === undefined ? {} : { decode }),
    },
  );
  note(context, `Dashboard: ${dashboard.url}`);
  return dashboard;
}

/** The model of a run: a new one, or as the newest checkpoint of the run has it. */
export function openTrainer(
  service: ServiceClient,
  {
    model,
    from,
    rank,
    seed,
  }: { readonly model?: string; readonly from?: string; readonly rank: number; readonly seed: number },
  { checkpoint }: ResumePoint,
): PromiseLike<TrainingClient> {
  if (checkpoint !== undefined) return service.createTrainingClientFromStateWithOptimizer(checkpoint.statePath);
  if (from !== undefined) return service.createTrainingClientFromState(from);
  return service.createLoraTrainingClient({ baseModel: model!, rank, seed });
}

/** How to resume a run, as a command. */
export const resumeCommand = (command: string, folder: string): string =>
  `tinker-rx ${command} --resume ${shellWord(relative('.', folder) || '.')}`;

/** Says what a run came to, and what to do next. `told` are numbers of the last step, by their labels. */
export function reportRun(
  context: Context,
  command: string,
  folder: string,
  { last, checkpoint, interrupted, cost, spent }: Outcome,
  told: readonly (readonly [label: string, value: number])[],
): number {
  const { statePath, samplerPath, steps = 0 } = checkpoint ?? {};
  if (interrupted) {
    note(
      context,
      `Stopped; ${steps === 0 ? 'nothing is saved yet' : `saved after step ${steps}`}. Continue with: ${resumeCommand(command, folder)}`,
    );
    return INTERRUPTED;
  }
  if (last === undefined) note(context, 'The run was finished already.');
  printProperties(
    context,
    [
      ['Steps', String(steps)],
      ...told.map(([label, value]) => [label, value.toFixed(4)] as const),
      ...(cost === undefined || cost.tokens === 0 ? [] : [['Cost', costLine(cost)] as const]),
      ...(spent === undefined ? [] : [['Stopped', spent.reason] as const]),
      ['Log', folder],
      ...(statePath === undefined ? [] : [['Checkpoint', statePath] as const]),
      ...(samplerPath === undefined ? [] : [['Sampler', samplerPath] as const]),
    ],
    () => ({
      steps,
      ...Object.fromEntries(told.map(([label, value]) => [label.toLowerCase().replaceAll(' ', '_'), value])),
      ...(cost === undefined ? {} : { cost }),
      ...(spent === undefined ? {} : { stopped: spent.reason }),
      log: folder,
      state_path: statePath ?? null,
      sampler_path: samplerPath ?? null,
    }),
  );
  if (spent !== undefined) note(context, `Continue with a larger budget: ${resumeCommand(command, folder)}`);
  note(context, `Its curves: tinker-rx dashboard --log ${shellWord(relative('.', folder) || '.')}`);
  if (samplerPath !== undefined) note(context, `Talk to it: tinker-rx chat --model ${shellWord(samplerPath)}`);
  return 0;
}

/** What a run has cost, and what is left out of it. */
function costLine(cost: Cost): string {
  const { usd, unpriced, pricesAsOf } = cost;
  const dated = usd === undefined ? '' : `, prices of ${pricesAsOf}`;
  return `${costText(cost)}${dated}${unpriced.length === 0 ? '' : `; no price for ${unpriced.join(', ')}`}`;
}
