import { firstValueFrom } from 'rxjs';
import type { Context } from '../context.js';
import { note } from '../context.js';
import { shellWord } from '../output/format.js';
import { printJson } from '../output/print.js';
import { styleFor } from '../terminal/style.js';

export interface LocalOptions {
  readonly port: number;
  readonly data?: string;
  readonly key?: string;
  readonly clock: number;
  readonly dialect: 'tinker' | 'skyrl';
  readonly logprobs: 'raw' | 'scaled';
  readonly strict?: boolean;
}

/** Runs the embedded service until it is interrupted. */
export default async function local(context: Context, options: LocalOptions): Promise<void> {
  const { port, data, key, clock, dialect, logprobs, strict = false } = options;
  const { LocalTinker } = await import('../../local/index.js');
  // Listened for from before the start: an early Ctrl-C must not leave a temporary folder behind.
  const interrupted = firstValueFrom(context.interrupted$);
  const service = await LocalTinker.start({
    port,
    clockMs: clock,
    dialect,
    sampledLogprobs: logprobs,
    refuseOverflow: strict,
    refuseUnknownInputs: strict,
    ...(data === undefined ? {} : { data }),
    ...(key === undefined ? {} : { apiKey: key }),
  });
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
