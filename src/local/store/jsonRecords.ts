import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isTemporary, replaceFile } from '../../support/files/writeAtomically.js';
import { Mutex } from './mutex.js';
import { folderOf } from './names.js';
import { parseJson } from '../../support/parseJson.js';

/** Small records, one JSON file each, all of them in memory too. Writes happen in the order of the calls. */
export class JsonRecords<A extends object> {
  readonly #mutex = new Mutex();

  private constructor(
    private readonly folder: string,
    private readonly records: Map<string, A>,
  ) {}

  /** Reads every record for which `isRecord` holds; its id is what `idOf` says. Others are left alone. */
  static async open<A extends object>(
    folder: string,
    isRecord: (value: unknown) => value is A,
    idOf: (record: A) => string,
  ): Promise<JsonRecords<A>> {
    await mkdir(folder, { recursive: true });
    const records = new Map<string, A>();
    for (const name of await readdir(folder)) {
      if (isTemporary(name)) await rm(join(folder, name), { force: true });
      else if (name.endsWith('.json')) {
        const value = parseJson(await readFile(join(folder, name), 'utf8'));
        if (isRecord(value)) records.set(idOf(value), value);
      }
    }
    return new JsonRecords(folder, records);
  }

  get(id: string): A | undefined {
    return this.records.get(id);
  }

  values(): A[] {
    return [...this.records.values()];
  }

  /** In memory at once, on disk when the promise resolves. A new record that cannot be written is forgotten again. */
  async put(id: string, record: A): Promise<void> {
    const isNew = !this.records.has(id);
    this.records.set(id, record);
    try {
      await this.#mutex.run(() => replaceFile(this.#path(id), `${JSON.stringify(record)}\n`));
    } catch (error) {
      if (isNew) this.records.delete(id);
      throw error;
    }
  }

  /** Gone from memory at once, from disk when the promise resolves. */
  delete(id: string): Promise<void> {
    this.records.delete(id);
    return this.#mutex.run(() => rm(this.#path(id), { force: true }));
  }

  flush(): Promise<void> {
    return this.#mutex.run(() => Promise.resolve());
  }

  #path(id: string): string {
    return join(this.folder, `${folderOf(id)}.json`);
  }
}
