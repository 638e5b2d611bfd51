import type * as age from 'age-encryption';
import { UserError } from '../queue/failure.js';

/**
 * Files encrypted to every one of some age recipients (`age1…`), each with `.age` at the end of its name.
 *
 * @throws UserError for an invalid recipient, and if the npm package `age-encryption` is not installed.
 */
export async function encryptFiles(
  files: ReadonlyMap<string, Uint8Array>,
  recipients: readonly string[],
): Promise<Map<string, Uint8Array>> {
  const { Encrypter } = await load();
  const encrypter = new Encrypter();
  for (const recipient of recipients) {
    try {
      encrypter.addRecipient(recipient);
    } catch {
      const what = recipient.startsWith('ssh-') ? 'SSH keys are not supported here' : 'not an age recipient';
      throw new UserError(`age_encryption_recipients: ${what}: ${JSON.stringify(recipient.slice(0, 80))}`);
    }
  }
  const encrypted = new Map<string, Uint8Array>();
  for (const [name, content] of files) encrypted.set(`${name}.age`, await encrypter.encrypt(content));
  return encrypted;
}

async function load(): Promise<typeof age> {
  try {
    return await import('age-encryption');
  } catch {
    throw new UserError('to encrypt with age, install the npm package age-encryption beside tinker-rx');
  }
}
