import { lstatSync } from 'node:fs';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { plainLine, plainText } from '../../../support/plainText.js';
import { CliError } from '../../CliError.js';

/** Where a file named by a server may be written: inside the folder, and nowhere else. */
export function safeTarget(folder: string, name: string): string {
  const target = resolve(folder, name);
  const inside = relative(resolve(folder), target);
  const escapes = inside === '' || inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside);
  // A backslash or a drive means nothing here and a folder on another system, and controls steer a terminal; no honest checkpoint has these.
  if (escapes || isAbsolute(name) || /\\|^[a-zA-Z]:/.test(name) || plainText(name) !== name || /[\t\n\r]/.test(name))
    throw unsafe(name);
  for (let part = inside.split(sep), length = 1; length <= part.length; length++) {
    const entry = lstatSync(join(folder, ...part.slice(0, length)), { throwIfNoEntry: false });
    if (entry?.isSymbolicLink() === true) throw unsafe(name);
  }
  return target;
}

const unsafe = (name: string) =>
  new CliError(`Unsafe file path in checkpoint: ${JSON.stringify(plainLine(name))}`, {
    details: 'The checkpoint may be corrupted or malicious.',
  });
