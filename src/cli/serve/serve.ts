import { readFile } from 'node:fs/promises';
import { firstValueFrom } from 'rxjs';
import type { ServiceClient } from '../../client/index.js';
import type { CallRecorder, GatewayKey, GatewayOptions, RecordCallsOptions, ServedGateway } from '../../serve/index.js';
import { CliError } from '../CliError.js';
import { openService, withService } from '../clients.js';
import { note, type Context } from '../context.js';
import { loadModule } from '../loadModule.js';
import type { Chosen } from '../declare.js';
import type { SERVE } from './command.js';
import { openSampler } from '../sample/openSampler.js';
import { printJson } from '../output/print.js';
import { styleFor } from '../terminal/style.js';
import { askedModel, modelOf } from '../modelOf.js';

type ServeCommandOptions = Chosen<typeof SERVE>;

/** Serves a model, or what an upstream serves, in the shapes of OpenAI's and Anthropic's APIs until it is interrupted. */
export default async function serve(
  context: Context,
  given: ServeCommandOptions,
  place?: string,
  more: readonly string[] = [],
): Promise<number> {
  const options =
    given.launch === undefined || given.record !== undefined
      ? given
      : { ...given, record: newFile(context, given.launch) };
  const { upstream, key, launch: agent } = options;
  // With --model or --upstream, and an agent, every argument is the agent's.
  const named = agent !== undefined && (given.model !== undefined || upstream !== undefined);
  const args = named && place !== undefined ? [place, ...more] : more;
  const asked = named ? undefined : place;
  if (agent === undefined && args.length > 0)
    throw new CliError(`serve takes no argument ${args[0]} without --launch`, { exitCode: 2 });
  if (key !== undefined && key.length < 8) throw new CliError('--key must have at least 8 characters');
  const model = upstream !== undefined && asked === undefined ? options.model : askedModel(asked, options.model);
  if (options.redact !== undefined && options.record === undefined)
    throw new CliError('--redact without --record', { exitCode: 2 });
  const interrupted = firstValueFrom(context.interrupted$);
  const shared = await sharedOptions(context, options);
  const untilDone = async (gateway: ServedGateway, name: string): Promise<number> => {
    let code = 0;
    if (agent === undefined) {
      announce(context, gateway, name);
      await interrupted;
    } else {
      note(context, `Running ${agent} on ${name}; its calls go to ${options.record}.`);
      // Ctrl-C is the agent's own: it reads this terminal.
      const { launch } = await import('./launch.js');
      code = await launch(agent, gateway, name, args).catch((error: unknown) =>
        gateway.close().then(() => Promise.reject(error as Error)),
      );
    }
    const again = context.interrupted$.subscribe(() => void gateway.close());
    await gateway.close({ drainMs: options.drain * 1000 });
    again.unsubscribe();
    return code;
  };
  if (upstream !== undefined) {
    const { serveUpstream } = await import('../../serve/index.js');
    const found = upstreamKey(options);
    const name = model === undefined ? undefined : (await modelOf(model)).name;
    const gateway = await serveUpstream({
      ...shared,
      upstream,
      ...(name === undefined ? {} : { modelName: name }),
      ...(found === undefined ? {} : { upstreamKey: found }),
    });
    return untilDone(gateway, name ?? 'as named by the caller');
  }
  return withService(context, async (service) => {
    const gateway = await serveModel(context, service, { ...options, model: model! }, shared);
    return untilDone(gateway, options.name ?? model!);
  });
}

const newFile = ({ now }: Context, agent: string): string =>
  `${agent}-${new Date(now()).toISOString().replaceAll(/[:.]/g, '-')}.calls.jsonl`;

async function serveModel(
  context: Context,
  service: ServiceClient,
  options: ServeCommandOptions & { readonly model: string },
  shared: GatewayOptions,
): Promise<ServedGateway> {
  const { model, pieces, maxTokens, name = model } = options;
  const { serveSampler } = await import('../../serve/index.js');
  const { name: found, source } = await modelOf(model);
  const opened = await openSampler(context, service, { ...options, model: found });
  // The first client and sampler are open; those after a restart of the service are opened by the gateway.
  const clients = [service];
  const samplers = [opened.sampler];
  return serveSampler((client) => Promise.resolve(samplers.pop() ?? client.createSamplingClient(source)), {
    ...shared,
    renderer: opened.renderer,
    service: () => clients.pop() ?? openService(context),
    modelName: name,
    maxTokens,
    strict: options.strict === true,
    ...(pieces === undefined ? {} : { pieceTokens: pieces }),
  });
}

/** What every gateway is told, whatever it serves. */
async function sharedOptions(context: Context, options: ServeCommandOptions): Promise<GatewayOptions> {
  const { port, host, key, maxRequests, allowHost = [], record } = options;
  return {
    port,
    maxRequests,
    requestTimeoutMs: options.timeout * 1000,
    allowedHosts: host === undefined ? allowHost : [host, ...allowHost],
    keys: options.keys === undefined ? [] : await readKeys(options.keys),
    ...(options.accessLog === true ? { onRequest: (entry) => note(context, JSON.stringify(entry)) } : {}),
    ...(host === undefined ? {} : { host }),
    ...(key === undefined ? {} : { apiKey: key }),
    ...(record === undefined ? {} : { record: await openRecorder(context, record, options.redact) }),
  };
}

/** The key of the upstream: of the variable that is named, else of the usual ones. @throws CliError if the named one is not set */
function upstreamKey({ upstream, upstreamKey: name }: ServeCommandOptions): string | undefined {
  if (name !== undefined) {
    const key = process.env[name];
    if (key === undefined || key === '') throw new CliError(`--upstream-key: ${name} is not set`);
    return key;
  }
  const usual = upstream === 'hosted' ? ['UPSTREAM_API_KEY', 'TINKER_API_KEY'] : ['UPSTREAM_API_KEY'];
  return usual.map((each) => process.env[each]).find((key) => key !== undefined && key !== '');
}

async function openRecorder(context: Context, file: string, module: string | undefined): Promise<CallRecorder> {
  const { recordCalls } = await import('../../serve/index.js');
  const redact = module === undefined ? undefined : (await loadModule(module)).default;
  if (module !== undefined && typeof redact !== 'function')
    throw new CliError(`--redact: ${module} has no default export that is a function`);
  return recordCalls(file, {
    ...(redact === undefined ? {} : { redact: redact as NonNullable<RecordCallsOptions['redact']> }),
    onError: (error) => note(context, `Warning: a call was not recorded: ${(error as Error).message}`),
  });
}

function announce(context: Context, { baseURL, url, apiKey }: ServedGateway, name: string): void {
  if (context.format === 'json')
    return printJson(context, { base_url: baseURL, anthropic_base_url: url, api_key: apiKey, model: name });
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
