import { existsSync, renameSync } from 'node:fs';

/** Renames a file of an older run, if there is one: `metrics.jsonl` becomes `metrics.1.jsonl`, or the next free number. */
export function putAside(path: string): void {
  if (!existsSync(path)) return;
  for (let number = 1; ; number++) {
    const aside = path.replace(/(\.\w+)$/, `.${number}$1`);
    if (!existsSync(aside)) return renameSync(path, aside);
  }
}
