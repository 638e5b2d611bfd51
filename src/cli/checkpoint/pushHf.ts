import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { repositoryOf } from '../../adapters/baseModel.js';
import { exportPeft } from '../../adapters/exportPeft.js';
import type { Server } from '../../adapters/servers.js';
import { byteBar, type ByteBar } from '../terminal/byteBar.js';
import { CliError } from '../CliError.js';
import { withRest } from '../clients.js';
import { note, type Context } from '../context.js';
import { downloadable, downloadCheckpoint } from './files/downloadCheckpoint.js';
import { yesNo } from '../output/format.js';
import { HubRepository, type HubFile } from './hub/HubRepository.js';
import { hubEndpoint, hubToken } from './hub/hubToken.js';
import { matchesGlob } from './hub/matchesGlob.js';
import { modelCard } from './hub/modelCard.js';
import { withHttp } from '../http.js';
import { printProperties } from '../output/print.js';
import { waitFor } from '../terminal/waitFor.js';

export interface PushHfOptions {
  readonly repo?: string;
  readonly public?: boolean;
  readonly revision?: string;
  readonly commitMessage?: string;
  readonly createPr?: boolean;
  readonly allowPattern?: readonly string[];
  readonly ignorePattern?: readonly string[];
  readonly modelCard: boolean;
  readonly for: Server;
  readonly base?: string;
}

/** Downloads a checkpoint and uploads it to the Hugging Face hub as a PEFT adapter. */
export default async function checkpointPushHf(context: Context, options: PushHfOptions, path: string): Promise<void> {
  const { trainingRunId, checkpointId } = downloadable(path);
  const token = hubToken();
  const endpoint = hubEndpoint();
  const info = await withRest(context, 'asking for the weights', (rest) => rest.getWeightsInfoByTinkerPath(path));
  const folder = await mkdtemp(join(tmpdir(), 'tinker-rx-push-'));
  try {
    const { id, revision, url } = await withHttp(async (http) => {
      const user = await waitFor(context, 'asking the hub', HubRepository.whoami(http, token, endpoint));
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
      const repository = new HubRepository(http, token, endpoint, id);
      const url = await push(context, repository, adapter, revision, path, options);
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

async function push(
  context: Context,
  repository: HubRepository,
  folder: string,
  revision: string,
  path: string,
  options: PushHfOptions,
): Promise<string> {
  const bars = new Map<string, ByteBar>();
  const work = async () => {
    await repository.create(options.public !== true);
    if (revision !== 'main') await repository.createBranch(revision);
    const there = /tinker:\/\/[^\s`]+/.exec((await repository.readText('README.md', revision)) ?? '')?.[0];
    if (there !== undefined && there !== path)
      throw new CliError('The repository holds a different Tinker checkpoint', {
        details: `Found ${there}, expected ${path}.`,
      });
    return repository.commit(await chosenFiles(folder, options), {
      revision,
      message: options.commitMessage ?? `Upload ${path}`,
      createPr: options.createPr === true,
      onUpload: (name, bytes, totalBytes) => {
        const bar = bars.get(name) ?? byteBar(context, name);
        bars.set(name, bar);
        bar.update(bytes, totalBytes);
        if (bytes < totalBytes) return;
        bar.end();
        bars.delete(name);
      },
    });
  };
  return waitFor(context, () => (bars.size > 0 ? undefined : `uploading to ${repository.id}`), work());
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
