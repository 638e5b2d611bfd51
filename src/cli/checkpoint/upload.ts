import { openAsBlob } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExternalWeightsUpload } from '../../wire/weights.js';
import { CliError } from '../CliError.js';
import { withRest } from '../clients.js';
import type { Context } from '../context.js';
import type { Chosen } from '../declare.js';
import type { UPLOAD } from './command.js';
import { failureOf, withHttp, type Http } from '../http.js';
import { printProperties } from '../output/print.js';
import { waitFor } from '../terminal/waitFor.js';

const CONFIG = 'adapter_config.json';
/** The linear layers of a block, as PEFT names them. */
const [ATTENTION, MLP, UNEMBED] = ['q_proj', 'gate_proj', 'lm_head'];

/** Uploads an adapter's folder, as `checkpoint download` leaves it, and prints the path of the checkpoint made of it. */
export default async function checkpointUpload(
  context: Context,
  { baseModel: given, projectId }: Chosen<typeof UPLOAD>,
  folder: string,
): Promise<void> {
  const config = await readConfig(folder);
  const baseModel = given ?? config.baseModel;
  const upload = await withRest(context, 'asking for addresses', (rest) =>
    rest.externalWeightsUploadStart({
      baseModel,
      loraConfig: config.lora,
      ...(projectId === undefined ? {} : { destinationProjectId: projectId }),
    }),
  );
  await withHttp((http) => waitFor(context, 'uploading', putFiles(http, folder, upload)));
  const path = await withRest(context, 'making the checkpoint', (rest) =>
    rest.externalWeightsUploadFinish(upload.uploadId),
  );
  printProperties(context, [['Checkpoint Path', path]], () => ({ checkpoint_path: path }));
}

async function putFiles(http: Http, folder: string, { urls }: ExternalWeightsUpload): Promise<void> {
  for (const [name, url] of Object.entries(urls)) {
    const file = join(folder, name);
    const body = await openAsBlob(file).catch(() => {
      throw new CliError(`There is no ${name} in ${folder}`, { details: 'The service asks for this file.' });
    });
    const response = await http.fetch(url, { method: 'PUT', body }).catch((error: unknown) => {
      throw new CliError(`Uploading ${name} failed: ${failureOf(error)}`);
    });
    const text = await response.text();
    if (!response.ok) throw new CliError(`Uploading ${name} failed: HTTP ${response.status} ${text.slice(0, 300)}`);
  }
}

interface AdapterConfig {
  readonly baseModel: string;
  readonly lora: {
    readonly rank: number;
    readonly trainAttn: boolean;
    readonly trainMlp: boolean;
    readonly trainUnembed: boolean;
  };
}

async function readConfig(folder: string): Promise<AdapterConfig> {
  const file = join(folder, CONFIG);
  let config: Readonly<Record<string, unknown>>;
  try {
    config = JSON.parse(await readFile(file, 'utf8')) as typeof config;
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${(error as Error).message}`);
  }
  const { r: rank, target_modules: modules, base_model_name_or_path: baseModel } = config;
  if (typeof rank !== 'number' || !Array.isArray(modules))
    throw new CliError(`${file} does not describe a PEFT adapter: it needs r and a list of target_modules`);
  return {
    baseModel: typeof baseModel === 'string' ? baseModel : '',
    lora: {
      rank,
      trainAttn: modules.includes(ATTENTION),
      trainMlp: modules.includes(MLP),
      trainUnembed: modules.includes(UNEMBED),
    },
  };
}
