import { createHash } from 'node:crypto';
import { UserError } from '../queue/failure.js';

const NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;
const RESERVED_ON_WINDOWS = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/;

/**
 * Checks the name of a checkpoint as a caller gave it.
 *
 * @throws UserError for anything but letters, digits, dots, dashes and underscores, so that no name is a path.
 */
export function checkName(name: string): string {
  if (!NAME.test(name)) {
    throw new UserError(
      `not a checkpoint name: use 1 to 128 letters, digits, '.', '_' or '-', and start with a letter, digit or '_'; ` +
        `got ${JSON.stringify(name.slice(0, 200))}`,
    );
  }
  return name;
}

/**
 * The folder that holds what is called `name`. Different names never share one, also if the file system does not
 * tell upper from lower case or treats some names as devices; the true name is in the manifest.
 */
export function folderOf(name: string): string {
  const plain = name.toLowerCase().replace(/[^a-z0-9._-]/g, '+');
  if (plain === name && !RESERVED_ON_WINDOWS.test(plain) && !plain.endsWith('.') && !plain.startsWith('.'))
    return plain;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 12);
  return `${plain.slice(0, 100)}~${digest}`;
}
