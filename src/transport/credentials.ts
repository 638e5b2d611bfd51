import { chmodSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { isLeft } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import { describeErrors, optional, response, withDefault } from '../wire/record.js';
import { ValidationError } from '../wire/tinkerError.js';

const KeyRecord = response('KeyRecord', {
  type: t.union([t.literal('manual'), t.literal('generated')], "'manual' | 'generated'"),
  key: t.string,
  name: t.string,
  note: optional(t.string),
  details: optional(t.UnknownRecord),
});
/** One stored API key. */
export interface KeyRecord {
  /** How it came here: `manual` (entered) or `generated` (by a login). */
  readonly type: 'manual' | 'generated';
  /** The key itself. */
  readonly key: string;
  /** A name to recognise it by. */
  readonly name: string;
  /** A note. Default: none. */
  readonly note?: string;
  /** What the service said about it. Default: nothing. */
  readonly details?: { [x: string]: unknown };
}

const StoredCredentials = response('StoredCredentials', {
  version: withDefault(t.literal(1), 1),
  default: optional(t.string),
  keys: withDefault(t.record(t.string, KeyRecord), {}),
});
interface StoredCredentials {
  readonly version: 1;
  readonly default?: string;
  readonly keys: Readonly<Record<string, KeyRecord>>;
}

const defaultCredentialsPath = (): string => join(homedir(), '.tinker', 'credentials.json');

/**
 * The API keys that `auth login` stored, in the file that the Python SDK uses too: readable by its owner only, and
 * replaced whole, so that a reader sees the old file or the new one.
 */
export class CredentialStore {
  constructor(
    /** The file the keys are kept in. Default `~/.tinker/credentials.json`. */
    readonly path: string = defaultCredentialsPath(),
  ) {}

  /**
   * Reads the file. An absent file is an empty store.
   *
   * @throws ValidationError when the file is there but is not a credentials file. Its content is never shown.
   */
  load(): StoredCredentials {
    let text: string;
    try {
      text = readFileSync(this.path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { version: 1, keys: {} };
      throw new ValidationError(`cannot read stored credentials in ${this.path}`, { cause: error });
    }
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      throw new ValidationError(`stored credentials in ${this.path} are not JSON`);
    }
    const decoded = StoredCredentials.decode(json);
    if (isLeft(decoded))
      throw new ValidationError(`stored credentials in ${this.path}: ${describeErrors(decoded.left)}`);
    return decoded.right;
  }

  /** Returns the API key that is used if nothing else is set, or undefined. */
  defaultKey(): string | undefined {
    const { default: id, keys } = this.load();
    return id === undefined ? undefined : keys[id]?.key;
  }

  /** Adds a key, or replaces the one with this id. */
  addKey(id: string, record: KeyRecord): void {
    const stored = this.load();
    this.#save({ ...stored, keys: { ...stored.keys, [id]: record } });
  }

  /** Chooses the default key by id; undefined for none. */
  setDefault(id: string | undefined): void {
    const { default: _, ...stored } = this.load();
    if (id !== undefined && stored.keys[id] === undefined)
      throw new ValidationError(`no stored key ${JSON.stringify(id)}`);
    this.#save(id === undefined ? stored : { ...stored, default: id });
  }

  /** Deletes a key; if it was the default there is none afterwards. */
  deleteKey(id: string): void {
    const { default: chosen, ...stored } = this.load();
    const { [id]: deleted, ...keys } = stored.keys;
    if (deleted === undefined) throw new ValidationError(`no stored key ${JSON.stringify(id)}`);
    this.#save({ ...stored, keys, ...(chosen === undefined || chosen === id ? {} : { default: chosen }) });
  }

  #save(credentials: StoredCredentials): void {
    const folder = dirname(this.path);
    if (statSync(folder, { throwIfNoEntry: false }) === undefined) mkdirSync(folder, { recursive: true, mode: 0o700 });
    const temporary = mkdtempSync(join(folder, '.credentials-'));
    try {
      const file = join(temporary, 'credentials.json');
      writeFileSync(file, JSON.stringify(StoredCredentials.encode(credentials), null, 2), { mode: 0o600 });
      chmodSync(file, 0o600);
      renameSync(file, this.path);
    } finally {
      rmSync(temporary, { recursive: true, force: true });
    }
  }
}
