import { EMPTY, lastValueFrom } from 'rxjs';
import type { Renderer } from '../../../chat/renderers/core/Renderer.js';
import { rendererOf } from '../../../client/chat.js';
import { CliError } from '../../CliError.js';
import type { Context } from '../../context.js';
import { loadRenderer } from '../../loadRenderer.js';
import { count } from '../../output/format.js';
import { printProperties } from '../../output/print.js';
import { readExampleTokens } from './readExamples.js';
import type { TrainConfig } from './train.js';

/** Says what a run would train on and cost. Nothing is sent to the service. */
export async function dryRun(context: Context, config: TrainConfig): Promise<number> {
  const { model, batchSize, epochs } = config;
  if (model === undefined) {
    throw new CliError('--dry-run without --model', {
      details: 'Only the service knows the base model of a checkpoint: give --model instead of --from.',
      exitCode: 2,
    });
  }
  const load = (): Promise<Renderer> => lastValueFrom(rendererOf(model, undefined, config.renderer));
  const renderer = await loadRenderer(context, load, EMPTY);
  const { examples, tokens } = await readExampleTokens(context, config, renderer, config.data);
  const steps = config.steps ?? Math.ceil((examples * epochs) / batchSize);
  const trained = Math.round(config.steps === undefined ? tokens * epochs : (tokens / examples) * batchSize * steps);
  const held =
    config.validation === undefined ? undefined : await readExampleTokens(context, config, renderer, config.validation);
  const validations = held === undefined ? 0 : Math.floor(steps / (config.validateEvery ?? config.checkpointEvery));
  const validated = (held?.tokens ?? 0) * validations;
  const { priceOf, readPrices } = await import('../../../evals/index.js');
  const { asOf, models } = readPrices(config.prices);
  const counts = { prompt: 0, cached: 0, sampled: 0, trained: trained + validated };
  const usd = models[model] === undefined ? undefined : priceOf(counts, models[model]);
  const { budgetUsd = Infinity, budgetTokens = Infinity } = config;
  const fits = counts.trained <= budgetTokens && (usd ?? 0) <= budgetUsd;
  printProperties(
    context,
    [
      ['Steps', `${steps.toLocaleString('en-US')} of ${count(batchSize, 'example')}`],
      ['Tokens', `${trained.toLocaleString('en-US')} to train on`],
      ['Validation', held && `${validated.toLocaleString('en-US')} tokens, ${count(validations, 'time')}`],
      [
        'Cost',
        usd === undefined ? `no price for ${model} in the list of ${asOf}` : `$${usd.toFixed(4)}, prices of ${asOf}`,
      ],
      ['Budget', fits ? undefined : 'not enough: the run would stop early'],
    ],
    () => ({
      model,
      steps,
      examples,
      tokens: counts.trained,
      usd: usd ?? null,
      prices_as_of: asOf,
      within_budget: fits,
    }),
  );
  return 0;
}
