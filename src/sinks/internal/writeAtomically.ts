import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { namingFile } from './namingFile.js';

/** Replaces a file: whoever reads it, also after a crash, finds the old text or the new one, never a part. */
export function writeAtomically(path: string, text: string): void {
  const temporary = `${path}.${process.pid}.tmp`;
  const descriptor = openSync(temporary, 'w');
  try {
    namingFile(path, () => {
      writeFileSync(descriptor, text);
      fsyncSync(descriptor);
    });
  } finally {
    closeSync(descriptor);
  }
  renameSync(temporary, path);
}
