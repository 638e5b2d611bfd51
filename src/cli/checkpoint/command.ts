import { Option, type Command } from 'commander';
import type { Server } from '../../adapters/index.js';
import { integer, lazily, pairs, several, type Declaration } from '../declare.js';

// Named here, so that the adapters are not loaded with the command.
const SERVERS: readonly Server[] = ['vllm', 'sglang', 'peft'];
const PATH = 'tinker:// path, for instance tinker://run-id/weights/0001';

/** `checkpoint`. */
export function declareCheckpoint(program: Command, declaration: Declaration): void {
  const checkpoint = program.command('checkpoint').description('Manage checkpoints');
  checkpoint
    .command('list')
    .description('List checkpoints of a run, or of all runs')
    .option('--run-id <id>', 'training run ID')
    .option('--limit <n>', 'maximum number of checkpoints from all runs (0 = all)', integer(0), 20)
    .action(lazily(declaration, () => import('./list.js')));
  checkpoint
    .command('search')
    .description('Search checkpoints, newest first')
    .option('--project-id <id>', 'project (may be repeated)', several)
    .option('--metadata <name=value>', 'user metadata (may be repeated)', pairs)
    .addOption(
      new Option('--type <type>', 'only checkpoints of this type').choices(['training', 'sampler', 'external']),
    )
    .option('--owner <who>', 'own, accessible, or the URN of a user', 'own')
    .option('--base-model <name>', 'base model (may be repeated)', several)
    .option('--limit <n>', 'maximum number of checkpoints (0 = all)', integer(0), 20)
    .action(lazily(declaration, () => import('./search.js')));
  checkpoint
    .command('info')
    .description('Show details of a specific checkpoint')
    .argument('<checkpoint-path>', PATH)
    .action(lazily(declaration, () => import('./info.js')));
  checkpoint
    .command('publish')
    .description('Make a checkpoint publicly accessible')
    .argument('<checkpoint-path>', PATH)
    .action(lazily(declaration, () => import('./publish.js')));
  checkpoint
    .command('unpublish')
    .description('Make a checkpoint private again')
    .argument('<checkpoint-path>', PATH)
    .action(lazily(declaration, async () => ({ default: (await import('./publish.js')).unpublish })));
  checkpoint
    .command('set-ttl')
    .description('Set or remove when a checkpoint expires')
    .argument('<checkpoint-path>', PATH)
    .option('--ttl <seconds>', 'seconds from now (1 hour to 10 years)', integer(0))
    .option('--remove', 'never expire')
    .action(lazily(declaration, () => import('./setTtl.js')));
  checkpoint
    .command('delete')
    .description('Delete checkpoints permanently')
    .argument('[checkpoint-paths...]', PATH)
    .option('--run-id <id>', 'delete all checkpoints of a training run')
    .option('--type <type>', 'with --run-id: only weights, sampler_weights or external_weights')
    .option('--before <date>', 'with --run-id: only those created before this date in UTC (ISO 8601)')
    .option('--after <date>', 'with --run-id: only those created after this date in UTC (ISO 8601)')
    .option('-y, --yes', 'do not ask for confirmation')
    .action(lazily(declaration, () => import('./delete.js')));
  checkpoint
    .command('download')
    .description('Download a training checkpoint or exported weights, in Hugging Face layout')
    .argument('<checkpoint-path>', PATH)
    .option('-o, --output <folder>', "folder to put the checkpoint's folder in (default: the current one)")
    .option('--force', 'replace an existing folder')
    .action(lazily(declaration, () => import('./download.js')));
  checkpoint
    .command('upload')
    .description('Upload an adapter, in the layout of checkpoint download, as a checkpoint')
    .argument('<folder>', 'folder with adapter_model.safetensors and adapter_config.json')
    .option('--base-model <name>', 'base model (default: the one in adapter_config.json)')
    .option('--project-id <id>', 'project of the checkpoint (default: TINKER_PROJECT_ID)')
    .action(lazily(declaration, () => import('./upload.js')));
  checkpoint
    .command('export')
    .description('Write a checkpoint as a PEFT adapter that vLLM, SGLang or PEFT load')
    .argument('<checkpoint>', `${PATH}, or a folder that it was downloaded to`)
    .requiredOption('-o, --output <folder>', 'folder to create')
    .option('--peft', "the layout: PEFT's is the only one")
    .addOption(new Option('--for <server>', 'what will load it').choices(SERVERS).default('vllm'))
    .option('--base <model>', 'base model: a folder, or a repository of the hub (default: what it was trained from)')
    .option('--force', 'replace a folder that exists')
    .action(lazily(declaration, () => import('./export.js')));
  checkpoint
    .command('merge')
    .description('Write the base model with a checkpoint added to its weights')
    .argument('<checkpoint>', `${PATH}, or a folder that it was downloaded to`)
    .requiredOption('-o, --output <folder>', 'folder to create')
    .option('--base <model>', 'base model: a folder, or a repository of the hub (default: what it was trained from)')
    .option('--force', 'replace a folder that exists')
    .action(lazily(declaration, () => import('./merge.js')));
  checkpoint
    .command('push-hf')
    .description('Upload a checkpoint to the Hugging Face Hub as a PEFT adapter')
    .argument('<checkpoint-path>', PATH)
    .option('-r, --repo <id>', 'repository, for instance name/my-adapter (default: derived from the run)')
    .option('--public', 'make a new repository public (default: private)')
    .option('--revision <branch>', 'branch to upload to')
    .option('--commit-message <text>', 'message of the commit')
    .option('--create-pr', 'open a pull request instead of pushing')
    .option('--allow-pattern <glob>', 'only files that match (may be repeated)', several)
    .option('--ignore-pattern <glob>', 'no files that match (may be repeated)', several)
    .addOption(new Option('--for <server>', 'what will load it').choices(SERVERS).default('peft'))
    .option('--base <model>', 'base model: a folder, or a repository of the hub (default: what it was trained from)')
    .option('--no-model-card', 'do not write a README.md')
    .action(lazily(declaration, () => import('./pushHf.js')));
}
