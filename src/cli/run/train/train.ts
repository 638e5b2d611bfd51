import { Subject, tap } from 'rxjs';
import type { SourceEvent } from '../../../sources/index.js';
import { CliError } from '../../CliError.js';
import type { Context } from '../../context.js';
import type { Given } from '../../declare.js';
import { warnOfFewRows } from '../countRows.js';
import type { RunWork } from '../followRun.js';
import { learningRateFor } from '../learningRateFor.js';
import { TRAIN, type Config } from '../options.js';
import { planRun, refusePipe } from '../planRun.js';
import { runCommand, type OpenRun, type RunKind } from '../runCommand.js';
import { dryRun } from './dryRun.js';
import { countExamples, readValidation } from './readExamples.js';
import { patienceOf, trainingSteps } from './trainingSteps.js';

export type TrainConfig = Config<typeof TRAIN>;

const KIND: RunKind<typeof TRAIN> = {
  name: 'train',
  options: TRAIN,
  loss: () => 'cross_entropy',
  check: ({ validateEvery, earlyStop, validation }) => {
    if (validation !== undefined) return;
    const flag =
      validateEvery !== undefined ? '--validate-every' : earlyStop !== undefined ? '--early-stop' : undefined;
    if (flag !== undefined)
      throw new CliError(`${flag} without --validation`, {
        details: 'Give a file of held-out conversations with --validation.',
        exitCode: 2,
      });
  },
  prepare,
};

/** Trains on a file of conversations. */
export default async function train(context: Context, given: Given<typeof TRAIN>, data?: string): Promise<number> {
  if (given.dryRun !== true) return runCommand(context, KIND, given, data);
  refusePipe(data, '--dry-run');
  return dryRun(context, (await planRun(KIND, given, data, context.now())).config);
}

async function prepare(run: OpenRun<TrainConfig>): Promise<RunWork> {
  const { context, config, folder, renderer } = run;
  const examples = await countExamples(context, config, renderer);
  warnOfFewRows(context, examples, config.batchSize, 'example', '--batch-size');
  const validation =
    config.validation === undefined ? [] : await readValidation(context, config, renderer, config.validation);
  const totalSteps = config.steps ?? Math.ceil((examples * config.epochs) / config.batchSize);
  const learningRate = config.learningRate ?? (await learningRateFor(run.baseModel));
  const source$ = new Subject<SourceEvent>();
  const { metricsLog } = await import('../../../sinks/index.js');
  const steps = await trainingSteps(run, { learningRate, totalSteps, validation, source$ });
  let validated: number | undefined;
  return {
    totalSteps,
    ...(config.earlyStop === undefined
      ? {}
      : { fewer: `the validation loss did not improve ${patienceOf(config)} times in a row` }),
    about: `, learning rate ${learningRate}`,
    steps: (tools) =>
      steps(tools).pipe(
        tools.counted(),
        metricsLog(folder, { config: { ...config, learningRate } }),
        tap((step) => (validated = step.evaluations?.at(-1)?.metrics['validation_loss'] ?? validated)),
      ),
    told: (last) => [
      ['Loss', last?.loss],
      ['Validation loss', validated],
    ],
    source$,
  };
}
