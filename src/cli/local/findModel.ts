import { existsSync } from 'node:fs';
import { HubSettings } from '../../chat/tokenizer/hub/HubSettings.js';
import type { LoadProgress, ModelSource } from '../../local/index.js';
import { fetchModel, isFetched, isRepository } from '../../local/weights/fetchModel.js';
import { CliError } from '../CliError.js';
import type { Context } from '../context.js';
import { byteBar, type ByteBar } from '../terminal/byteBar.js';

/** Short names of models that run well on a laptop, with what a download of them takes. */
const ALIASES: Readonly<Record<string, { readonly repository: string; readonly size: string }>> = {
  smollm2: { repository: 'HuggingFaceTB/SmolLM2-135M-Instruct', size: '270 MB' },
  qwen3: { repository: 'Qwen/Qwen3-0.6B', size: '1.5 GB' },
};

/** A model on this machine: a folder, a GGUF file, or a repository of the Hugging Face hub, whose files are brought into its cache. */
export async function findModel(context: Context, model: string): Promise<ModelSource> {
  if (existsSync(model)) return { path: model };
  const bars = new Map<string, ByteBar>();
  try {
    return await fetchModel(repositoryOf(model), (event) => {
      const { file } = event;
      if (event.type === 'file-progress') {
        const bar = bars.get(file) ?? byteBar(context, `${event.repo}/${file}`);
        bars.set(file, bar);
        bar.update(event.receivedBytes, event.totalBytes);
      } else if (event.type === 'file-ready') bars.get(file)?.end();
    });
  } catch (error) {
    throw error instanceof CliError ? error : absent(model, (error as Error).message);
  }
}

/** What a model would have to be fetched from; undefined for one that is on this machine. */
export async function downloadOf(model: string): Promise<string | undefined> {
  if (existsSync(model)) return undefined;
  const repository = repositoryOf(model);
  if (await isFetched(repository)) return undefined;
  const { endpoint, cacheFolder } = new HubSettings();
  const size = ALIASES[model] === undefined ? '' : ` (${ALIASES[model].size})`;
  return `${repository}${size} from ${endpoint} into ${cacheFolder}`;
}

/** Shows how far the loading of weights is. */
export function loadingBar(context: Context): { onLoading: (progress: LoadProgress) => void; end: () => void } {
  let bar: ByteBar | undefined;
  return {
    onLoading: ({ model, loadedBytes, totalBytes }) => {
      bar ??= byteBar(context, `loading ${model} into memory`);
      bar.update(loadedBytes, totalBytes);
    },
    end: () => bar?.end(),
  };
}

function repositoryOf(model: string): string {
  const repository = ALIASES[model]?.repository ?? model;
  if (isRepository(repository)) return repository;
  throw absent(model, 'it is no folder and no file here, and no name of a repository');
}

const absent = (model: string, why: string) =>
  new CliError(`Cannot find the model ${model}: ${why}`, {
    details: `Give a folder with config.json and safetensors, a .gguf file, a repository such as ${ALIASES['smollm2']!.repository}, or one of ${Object.keys(ALIASES).join(', ')}.`,
  });
