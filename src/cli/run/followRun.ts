import { basename } from 'node:path';
import {
  catchError,
  EMPTY,
  identity,
  lastValueFrom,
  type MonoTypeOperatorFunction,
  type Observable,
  ReplaySubject,
  takeUntil,
  tap,
} from 'rxjs';
import type { ServiceClient } from '../../client/index.js';
import type { Dashboard } from '../../dashboard/index.js';
import type { BudgetSpent, Cost } from '../../evals/index.js';
import type { Step } from '../../operators/training/step.js';
import type { Checkpoint } from '../../operators/training/trainingBatch.js';
import type { SourceEvent } from '../../sources/index.js';
import { CliError } from '../CliError.js';
import { note, type Context } from '../context.js';
import type { OpenRun } from './runCommand.js';
import { largerBudget, openSpending, type SpendingOptions } from './Spending.js';

/** What a run uses of the one who follows it. */
export interface RunTools {
  /** Ends the run: steps in flight are finished, and the last one is saved. */
  readonly stop$: Observable<void>;
  /** Adds what the run has cost to its steps, before they are logged. */
  readonly counted: <T extends Step>() => MonoTypeOperatorFunction<T>;
  /** For the data: a failure of it ends the run as `stop$` does, so that no step is lost, and is reported after that. */
  readonly guarded: <T>() => MonoTypeOperatorFunction<T>;
  /** Shows a warning. */
  readonly warn: (warning: string) => void;
}

/** What a run is going to do. */
export interface RunWork {
  readonly totalSteps: number;
  /** There may be fewer steps than that. */
  readonly isMost?: boolean;
  /** Why there may be fewer. */
  readonly fewer?: string;
  /** More of it, for the line that begins with the number of steps: `, learning rate 0.01`. */
  readonly about: string;
  /** The steps, once they are in the log. */
  readonly steps: (tools: RunTools) => Observable<Step>;
  /** Numbers to show at the end, by their labels; those that are undefined are left out. */
  readonly told: (last: Step | undefined) => readonly (readonly [label: string, value: number | undefined])[];
  /** What is wrong where not one step came of the data. Default: that it holds nothing to train on. */
  readonly nothing?: ConstructorParameters<typeof CliError>;
  /** Tokens to text, for the dashboard. Default: the numbers. */
  readonly decode?: (tokens: ArrayLike<number>) => string;
  /** What the progress bar shows of a step. Default: its loss. */
  readonly detail?: (step: Step) => string;
  /** How the data is read, for the progress bar. */
  readonly source$?: Observable<SourceEvent>;
}

/** What a run came to. */
export interface Outcome {
  readonly last: Step | undefined;
  readonly told: readonly (readonly [label: string, value: number | undefined])[];
  /** Why it took fewer steps than it could; undefined if it took them all, or was stopped. */
  readonly fewer: string | undefined;
  readonly checkpoint: Checkpoint | undefined;
  readonly interrupted: boolean;
  /** What the run has cost, and why it ended early where a budget ended it. */
  readonly cost: Cost | undefined;
  readonly spent: BudgetSpent | undefined;
  /** The flag that gives the run a larger budget. */
  readonly largerBudget: string;
}

/**
 * Runs the steps with a log, a progress bar and perhaps a dashboard. The first Ctrl-C finishes and saves, the second one stops at once.
 * @throws CliError if not one step came of the data, and what the data failed with
 */
export async function followRun(
  { context, service, config, folder, resume, baseModel }: OpenRun<{ readonly data: string } & SpendingOptions>,
  {
    totalSteps,
    fewer,
    steps,
    told,
    nothing = [`${config.data} holds nothing to train on`],
    decode,
    detail,
    source$,
  }: RunWork,
  dashboardPort: number | true | undefined,
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
  const spending = await openSpending(context, service, { folder, model: baseModel }, config);
  let spent: BudgetSpent | undefined;
  const counting = spending.spent$.subscribe((found) => {
    spent = found;
    note(context, `Stopping: ${found.reason}. Steps in flight are finished, and a checkpoint is saved.`);
    stop$.next();
  });
  const dashboard =
    dashboardPort === undefined ? undefined : await openDashboard(context, service, dashboardPort, decode);
  const shown: MonoTypeOperatorFunction<Step> = dashboard?.showSteps(basename(folder), { config }) ?? identity;
  const bar: MonoTypeOperatorFunction<Step> = progressBar({
    total: totalSteps,
    events$: service.events$,
    cost$: spending.cost$,
    stream: context.stderr,
    ...(source$ === undefined ? {} : { source$ }),
    ...(detail === undefined ? {} : { detail }),
  });
  const warn = (warning: string) => note(context, `Warning: ${warning}`);
  let failure: { readonly error: unknown } | undefined;
  const guarded = <T>(): MonoTypeOperatorFunction<T> =>
    catchError((error: unknown) => {
      failure = { error };
      stop$.next();
      return EMPTY;
    });
  const counted = <T extends Step>() => withCost<T>(spending.cost$, { folder, service, model: baseModel });
  try {
    await lastValueFrom(
      steps({ stop$, counted, guarded, warn }).pipe(
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
  if (failure !== undefined) throw failure.error;
  if (presses > 1) await service.destroy();
  // A run that was finished before takes no step either.
  if (last === undefined && presses === 0 && spent === undefined && resume.steps === 0) throw new CliError(...nothing);
  const early = (last?.index ?? resume.steps - 1) + 1 < totalSteps;
  return {
    last,
    told: told(last),
    fewer: early && presses === 0 && spent === undefined && last !== undefined ? fewer : undefined,
    checkpoint,
    interrupted: presses > 0 && early,
    cost: spending.newest(),
    spent: early ? spent : undefined,
    largerBudget: largerBudget(config, spent),
  };
}

async function openDashboard(
  context: Context,
  service: ServiceClient,
  port: number | true,
  decode: RunWork['decode'],
): Promise<Dashboard> {
  const { serveDashboard } = await import('../../dashboard/index.js');
  const options = { port: port === true ? 0 : port, ...(decode === undefined ? {} : { decode }) };
  const dashboard = await serveDashboard({ service }, options);
  note(context, `Dashboard: ${dashboard.url}`);
  return dashboard;
}
