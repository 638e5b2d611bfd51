import { readFile } from 'node:fs/promises';
import { firstValueFrom } from 'rxjs';
import type { GatewayKey } from '../../serve/index.js';
import { CliError } from '../CliError.js';
import { openService, withService } from '../clients.js';
import { note, type Context } from '../context.js';
import { openSampler } from '../sample/openSampler.js';
import { printJson } from '../output/print.js';
import { styleFor } from '../terminal/style.js';
import { isCheckpointPath } from '../../wire/tinkerPath.js';

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
  readonly timeout: number;
  readonly allowHost?: readonly string[];
  readonly keys?: string;
  readonly strict?: boolean;
  readonly accessLog?: boolean;
  readonly drain: number;
}

/** Serves a model in the shapes of OpenAI's and Anthropic's APIs until it is interrupted. */
export default async function serve(context: Context, options: ServeCommandOptions): Promise<void> {
  const { model, port, host, key, pieces, maxTokens, maxRequests, name = model, allowHost = [] } = options;
  if (key !== undefined && key.length < 8) throw new CliError('--key must have at least 8 characters');
  const { serveSampler } = await import('../../serve/index.js');
  const keys = options.keys === undefined ? [] : await readKeys(options.keys);
  const interrupted = firstValueFrom(context.interrupted$);
  await withService(context, async (service) => {
    const opened = await openSampler(context, service, options);
    // The first client and sampler are open; those after a restart of the service are opened by the gateway.
    const clients = [service];
    const samplers = [opened.sampler];
    const source = isCheckpointPath(model) ? { modelPath: model } : { baseModel: model };
    const gateway = await serveSampler(
      (client) => Promise.resolve(samplers.pop() ?? client.createSamplingClient(source)),
      {
        port,
        renderer: opened.renderer,
        service: () => clients.pop() ?? openService(context),
        modelName: name,
        maxTokens,
        maxRequests,
        requestTimeoutMs: options.timeout * 1000,
        allowedHosts: host === undefined ? allowHost : [host, ...allowHost],
        keys,
        strict: options.strict === true,
        ...(options.accessLog === true ? { onRequest: (entry) => note(context, JSON.stringify(entry)) } : {}),
        ...(host === undefined ? {} : { host }),
        ...(key === undefined ? {} : { apiKey: key }),
        ...(pieces === undefined ? {} : { pieceTokens: pieces }),
      },
    );
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
    const again = context.interrupted$.subscribe(() => void gateway.close());
    await gateway.close({ drainMs: options.drain * 1000 });
    again.unsubscribe();
  });
}

async function readKeys(file: string): Promise<readonly GatewayKey[]> {
  try {
    const keys = JSON.parse(await readFile(file, 'utf8')) as unknown;
    if (Array.isArray(keys) && keys.every((entry) => typeof (entry as GatewayKey | null)?.key === 'string'))
      return keys as readonly GatewayKey[];
  } catch (error) {
    throw new CliError(`--keys: ${file} cannot be read: ${(error as Error).message}`);
  }
  throw new CliError(`--keys: ${file} must be a list of objects, each with a key`);
}
