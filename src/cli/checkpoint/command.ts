import type { Command } from 'commander';
import type { Server } from '../../adapters/index.js';
import { integer, pairs, several, type Add, type CommandOptions } from '../declare.js';

// Named here, so that the adapters are not loaded with the command.
const SERVERS = ['vllm', 'sglang', 'peft'] as const satisfies readonly Server[];
const PATH = 'tinker:// path, for instance tinker://run-id/weights/0001';
const BASE = {
  flag: '--base <model>',
  help: 'base model: a folder, or a repository of the hub (default: what it was trained from)',
} as const;

// prettier-ignore
export const SEARCH = {
  projectId: { flag: '--project-id <id>', parse: several, help: 'project (may be repeated)' },
  metadata: { flag: '--metadata <name=value>', parse: pairs, help: 'user metadata (may be repeated)' },
  type: { flag: '--type <type>', choices: ['training', 'sampler', 'external'], help: 'only checkpoints of this type' },
  owner: { flag: '--owner <who>', default: 'own', help: 'own, accessible, or the URN of a user' },
  baseModel: { flag: '--base-model <name>', parse: several, help: 'base model (may be repeated)' },
  limit: { flag: '--limit <n>', parse: integer(0), default: 20, help: 'maximum number of checkpoints (0 = all)' },
} as const satisfies CommandOptions;

// prettier-ignore
export const DELETE = {
  runId: { flag: '--run-id <id>', help: 'delete all checkpoints of a training run' },
  type: { flag: '--type <type>', help: 'with --run-id: only weights, sampler_weights or external_weights' },
  before: { flag: '--before <date>', help: 'with --run-id: only those created before this date in UTC (ISO 8601)' },
  after: { flag: '--after <date>', help: 'with --run-id: only those created after this date in UTC (ISO 8601)' },
  yes: { flag: '-y, --yes', help: 'do not ask for confirmation' },
} as const satisfies CommandOptions;

// prettier-ignore
export const UPLOAD = {
  baseModel: { flag: '--base-model <name>', help: 'base model (default: the one in adapter_config.json)' },
  projectId: { flag: '--project-id <id>', help: 'project of the checkpoint (default: TINKER_PROJECT_ID)' },
} as const satisfies CommandOptions;

// prettier-ignore
export const EXPORT = {
  output: { flag: '-o, --output <folder>', isRequired: true, help: 'folder to create; with --gguf a file' },
  peft: { flag: '--peft', help: "PEFT's layout, a folder (default)" },
  gguf: { flag: '--gguf [type]', choices: ['f16', 'q8_0'], preset: 'f16', help: 'the merged model as a GGUF file for llama.cpp and Ollama: f16 (default) or q8_0' },
  for: { flag: '--for <server>', choices: SERVERS, default: 'vllm', help: 'what will load it' },
  base: { ...BASE, help: 'base model: a folder, a repository of the hub, with --gguf also a .gguf file (default: what it was trained from)' },
  force: { flag: '--force', help: 'replace what exists' },
} as const satisfies CommandOptions;

export const MERGE = {
  output: { flag: '-o, --output <folder>', isRequired: true, help: 'folder to create' },
  base: BASE,
  force: { flag: '--force', help: 'replace a folder that exists' },
} as const satisfies CommandOptions;

// prettier-ignore
export const PUSH_HF = {
  repo: { flag: '-r, --repo <id>', help: 'repository, for instance name/my-adapter (default: derived from the run)' },
  public: { flag: '--public', help: 'make a new repository public (default: private)' },
  revision: { flag: '--revision <branch>', help: 'branch to upload to' },
  commitMessage: { flag: '--commit-message <text>', help: 'message of the commit' },
  createPr: { flag: '--create-pr', help: 'open a pull request instead of pushing' },
  allowPattern: { flag: '--allow-pattern <glob>', parse: several, help: 'only files that match (may be repeated)' },
  ignorePattern: { flag: '--ignore-pattern <glob>', parse: several, help: 'no files that match (may be repeated)' },
  for: { flag: '--for <server>', choices: SERVERS, default: 'peft', help: 'what will load it' },
  base: BASE,
  modelCard: { flag: '--no-model-card', default: true, help: 'do not write a README.md' },
} as const satisfies CommandOptions;

/** `checkpoint`. */
export function declareCheckpoint(program: Command, add: Add): void {
  const checkpoint = program.command('checkpoint').description('Manage checkpoints');
  add(checkpoint, 'list', () => import('./list.js'))
    .description('List checkpoints of a run, or of all runs')
    .option('--run-id <id>', 'training run ID')
    .option('--limit <n>', 'maximum number of checkpoints from all runs (0 = all)', integer(0), 20);
  add(checkpoint, 'search', () => import('./search.js'), SEARCH).description('Search checkpoints, newest first');
  add(checkpoint, 'info', () => import('./info.js'))
    .description('Show details of a specific checkpoint')
    .argument('<checkpoint-path>', PATH);
  add(checkpoint, 'publish', () => import('./publish.js'))
    .description('Make a checkpoint publicly accessible')
    .argument('<checkpoint-path>', PATH);
  add(checkpoint, 'unpublish', async () => ({
    default: (await import('./publish.js')).unpublish,
  }))
    .description('Make a checkpoint private again')
    .argument('<checkpoint-path>', PATH);
  add(checkpoint, 'set-ttl', () => import('./setTtl.js'))
    .description('Set or remove when a checkpoint expires')
    .argument('<checkpoint-path>', PATH)
    .option('--ttl <seconds>', 'seconds from now (1 hour to 10 years)', integer(0))
    .option('--remove', 'never expire');
  add(checkpoint, 'delete', () => import('./delete.js'), DELETE)
    .description('Delete checkpoints permanently')
    .argument('[checkpoint-paths...]', PATH);
  add(checkpoint, 'download', () => import('./download.js'))
    .description('Download a training checkpoint or exported weights, in Hugging Face layout')
    .argument('<checkpoint-path>', `${PATH}, or folder of a run`)
    .option('-o, --output <folder>', "folder to put the checkpoint's folder in (default: the current one)")
    .option('--force', 'replace an existing folder');
  add(checkpoint, 'upload', () => import('./upload.js'), UPLOAD)
    .description('Upload an adapter, in the layout of checkpoint download, as a checkpoint')
    .argument('<folder>', 'folder with adapter_model.safetensors and adapter_config.json');
  add(checkpoint, 'export', () => import('./export.js'), EXPORT)
    .description('Write a checkpoint as a PEFT adapter that vLLM, SGLang or PEFT load, or merged as a GGUF file')
    .argument('<checkpoint>', `${PATH}, folder of a run, or folder that it was downloaded to`);
  add(checkpoint, 'merge', () => import('./merge.js'), MERGE)
    .description('Write the base model with a checkpoint added to its weights')
    .argument('<checkpoint>', `${PATH}, folder of a run, or folder that it was downloaded to`);
  add(checkpoint, 'push-hf', () => import('./pushHf.js'), PUSH_HF)
    .description('Upload a checkpoint to the Hugging Face Hub as a PEFT adapter')
    .argument('<checkpoint-path>', PATH);
}
