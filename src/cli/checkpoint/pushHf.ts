import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { repositoryOf } from '../../adapters/baseModel.js';
import { exportPeft } from '../../adapters/exportPeft.js';
import { HubSettings } from '../../chat/tokenizer/hub/HubSettings.js';
import { CliError } from '../CliError.js';
import { withRest } from '../clients.js';
import { note, type Context } from '../context.js';
import type { Chosen } from '../declare.js';
import type { PUSH_HF } from './command.js';
import { downloadable, downloadCheckpoint } from './files/downloadCheckpoint.js';
import { yesNo } from '../output/format.js';
import { HubRepository, type HubFile } from './hub/HubRepository.js';
import { matchesGlob } from './hub/matchesGlob.js';
import { modelCard } from './hub/modelCard.js';
import { withHttp } from '../http.js';
import { printProperties } from '../output/print.js';
import type { Status } from '../terminal/statusLine.js';
import { waitFor } from '../terminal/waitFor.js';

type PushHfOptions = Chosen<typeof PUSH_HF>;

/** Downloads a checkpoint and uploads it to the Hugging Face hub as a PEFT adapter. */
export default async function checkpointPushHf(context: Context, options: PushHfOptions, path: string): Promise<void> {
  const { trainingRunId, checkpointId } = downloadable(path);
  const { token, endpoint } = new HubSettings();
  if (token === undefined)
    throw new CliError('Not logged in to Hugging Face', { details: 'Run: hf auth login, or set HF_TOKEN' });
  const info = await withRest(context, 'asking for the weights', (rest) => rest.getWeightsInfoByTinkerPath(path));
  const folder = await mkdtemp(join(tmpdir(), 'tinker-rx-push-'));
  try {
    const { id, revision, url } = await withHttp(async (http) => {
      const hub = await HubRepository.open(http, token, endpoint);
      const user = await waitFor(context, 'asking the hub', hub.whoami());
      const name = options.repo ?? safeName(`tinker-${info.baseModel.split('/').at(-1)}-${trainingRunId}`);
      const id = name.includes('/') ? name : `${user}/${name}`;
      const revision = options.revision ?? (options.repo === undefined ? safeName(checkpointId) : 'main');
      const weights = join(folder, 'weights');
      await downloadCheckpoint(context, path, weights);
      const adapter = join(folder, 'adapter');
      const base = options.base ?? repositoryOf(info.baseModel);
      const exporting = exportPeft({
        adapter: weights,
        output: adapter,
        server: options.for,
        base,
        baseName: repositoryOf(info.baseModel),
      });
      const { notes } = await waitFor(context, 'writing the adapter', exporting);
      for (const one of notes) note(context, one);
      if (options.modelCard) await writeFile(join(adapter, 'README.md'), modelCard(path, id, info));
      const url = await push(context, hub, { id, adapter, revision, path, options });
      return { id, revision, url };
    });
    const isPublic = options.public === true;
    printProperties(
      context,
      [
        ['Checkpoint Path', path],
        ['Repo ID', id],
        ['Revision', revision],
        ['Public', yesNo(isPublic)],
        ['URL', url],
      ],
      () => ({ checkpoint_path: path, repo_id: id, revision, public: isPublic, url }),
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Push {
  readonly id: string;
  readonly adapter: string;
  readonly revision: string;
  readonly path: string;
  readonly options: PushHfOptions;
}

async function push(
  context: Context,
  hub: HubRepository,
  { id, adapter, revision, path, options }: Push,
): Promise<string> {
  let uploading: Status | undefined;
  const work = async () => {
    await hub.create(id, revision, options.public !== true);
    const there = /tinker:\/\/[^\s`]+/.exec((await hub.readText(id, 'README.md', revision)) ?? '')?.[0];
    if (there !== undefined && there !== path)
      throw new CliError('The repository holds a different Tinker checkpoint', {
        details: `Found ${there}, expected ${path}.`,
      });
    return hub.commit(id, await chosenFiles(adapter, options), {
      revision,
      message: options.commitMessage ?? `Upload ${path}`,
      createPr: options.createPr === true,
      onUpload: (name, fraction) => (uploading = { label: `uploading ${name}`, fraction }),
    });
  };
  return waitFor(context, () => uploading ?? `uploading to ${id}`, work());
}

async function chosenFiles(
  folder: string,
  { allowPattern, ignorePattern = [] }: PushHfOptions,
): Promise<readonly HubFile[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ path, name: relative(folder, path).replaceAll('\\', '/') }));
  const ignored = allowPattern === undefined ? [...ignorePattern, 'checkpoint_complete'] : ignorePattern;
  const matches = (name: string, patterns: readonly string[]) => patterns.some((pattern) => matchesGlob(name, pattern));
  return files.filter(
    ({ name }) => (allowPattern === undefined || matches(name, allowPattern)) && !matches(name, ignored),
  );
}

const safeName = (text: string): string =>
  text
    .replace(/[^a-zA-Z0-9_.-]/g, '-')
    .replace(/-{2,}/g, '-')
    .replace(/^[-_ .]+|[-_ .]+$/g, '');
