import { firstValueFrom } from 'rxjs';
import { CliError } from '../CliError.js';
import { withService } from '../clients.js';
import { note, type Context } from '../context.js';
import { openSampler } from '../sample/openSampler.js';
import { printJson } from '../output/print.js';
import { styleFor } from '../terminal/style.js';

export interface ServeCommandOptions {
  readonly model: string;
  readonly port: number;
  readonly host?: string;
  readonly key?: string;
  readonly name?: string;
  readonly renderer?: string;
  readonly pieces?: number;
  readonly maxTokens: number;
  readonly maxRequests: number;
}

/** Serves a model in the shapes of OpenAI's and Anthropic's APIs until it is interrupted. */
export default async function serve(context: Context, options: ServeCommandOptions): Promise<void> {
  const { model, port, host, key, pieces, maxTokens, maxRequests, name = model } = options;
  if (key !== undefined && key.length < 8) throw new CliError('--key must have at least 8 characters');
  const { serveSampler } = await import('../../serve/index.js');
  const interrupted = firstValueFrom(context.interrupted$);
  await withService(context, async (service) => {
    const { sampler, renderer } = await openSampler(context, service, options);
    const gateway = await serveSampler(sampler, {
      port,
      renderer,
      service,
      modelName: name,
      maxTokens,
      maxRequests,
      ...(host === undefined ? {} : { host, allowedHosts: [host] }),
      ...(key === undefined ? {} : { apiKey: key }),
      ...(pieces === undefined ? {} : { pieceTokens: pieces }),
    });
    const { baseURL, url, apiKey } = gateway;
    if (context.format === 'json') {
      printJson(context, { base_url: baseURL, anthropic_base_url: url, api_key: apiKey, model: name });
    } else {
      const { bold } = styleFor(context.stdout);
      context.stdout.write(
        [
          `export OPENAI_BASE_URL=${bold(baseURL)}`,
          `export OPENAI_API_KEY=${bold(apiKey)}`,
          `export ANTHROPIC_BASE_URL=${bold(url)}`,
          `export ANTHROPIC_API_KEY=${bold(apiKey)}`,
          `# model: ${name}`,
          '',
        ].join('\n'),
      );
      note(context, 'Ready. Put these lines into another terminal; Ctrl-C ends the gateway.');
    }
    await interrupted;
    await gateway.close();
  });
}
