import { firstValueFrom } from 'rxjs';
import type { ModelSource } from '../../local/index.js';
import type { Context } from '../context.js';
import { note } from '../context.js';
import type { Chosen } from '../declare.js';
import type { LOCAL } from './command.js';
import { findModel, loadingBar } from './findModel.js';
import { shellWord } from '../output/format.js';
import { printJson } from '../output/print.js';
import { styleFor } from '../terminal/style.js';

/** Runs the embedded service until it is interrupted. */
export default async function local(context: Context, options: Chosen<typeof LOCAL>): Promise<void> {
  const { port, data, key, clock, dialect, logprobs, strict = false, model = [], threads } = options;
  const { LocalTinker } = await import('../../local/index.js');
  // Listened for from before the start: an early Ctrl-C must not leave a temporary folder behind.
  const interrupted = firstValueFrom(context.interrupted$);
  const models: ModelSource[] = [];
  for (const name of model) models.push(await findModel(context, name));
  const loading = loadingBar(context);
  const service = await LocalTinker.start({
    models,
    onLoading: loading.onLoading,
    ...(threads === undefined ? {} : { threads }),
    port,
    clockMs: clock,
    dialect,
    sampledLogprobs: logprobs,
    refuseOverflow: strict,
    refuseUnknownInputs: strict,
    ...(data === undefined ? {} : { data }),
    ...(key === undefined ? {} : { apiKey: key }),
  });
  loading.end();
  const { url, apiKey, baseModels, dataFolder } = service;
  if (context.format === 'json') {
    printJson(context, { url, api_key: apiKey, models: baseModels, data: dataFolder });
  } else {
    const { bold } = styleFor(context.stdout);
    context.stdout.write(
      [
        `export TINKER_BASE_URL=${bold(url)}`,
        `export TINKER_API_KEY=${bold(apiKey)}`,
        `# models: ${baseModels.join(', ')}`,
        `# data: ${data === undefined ? 'a temporary folder, removed at the end (keep it with --data)' : shellWord(dataFolder)}`,
        '',
      ].join('\n'),
    );
    note(context, 'Ready. Put these lines into another terminal; Ctrl-C ends the service.');
  }
  await interrupted;
  note(context, 'Closing …');
  await service.close();
  note(context, data === undefined ? 'Closed.' : `Closed. Continue with: tinker-rx local --data ${shellWord(data)}`);
}
