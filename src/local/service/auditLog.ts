import { appendFile, readFile } from 'node:fs/promises';
import { Mutex } from '../store/mutex.js';
import { parseJson } from '../../support/parseJson.js';

export interface AuditEntry {
  readonly timestamp: string;
  /** `<resource>_<action>`: checkpoint_create, checkpoint_read, … */
  readonly event: string;
  readonly event_details: Readonly<Record<string, unknown>>;
  readonly model_id?: string;
  readonly tinker_path?: string;
  readonly purpose?: string;
}

const KEPT = 10_000;

/** Who did what to checkpoints and projects: a line of JSON each, appended. */
export class AuditLog {
  readonly #mutex = new Mutex();

  private constructor(
    private readonly path: string,
    private readonly now: () => number,
    private readonly entries: AuditEntry[],
  ) {}

  static async open(path: string, now: () => number): Promise<AuditLog> {
    return new AuditLog(path, now, await readEntries(path));
  }

  add(event: string, entry: Omit<AuditEntry, 'timestamp' | 'event'>): void {
    const complete = { timestamp: new Date(this.now()).toISOString(), event, ...entry };
    this.entries.push(complete);
    if (this.entries.length > KEPT) this.entries.shift();
    void this.#mutex.run(() => appendFile(this.path, `${JSON.stringify(complete)}\n`)).catch(() => undefined);
  }

  /** Entries of one resource (all without it) and one UTC day (all without it), oldest first. */
  list(resource?: string, day?: string): AuditEntry[] {
    return this.entries.filter(
      ({ event, timestamp }) =>
        (resource === undefined || event.startsWith(`${resource}_`)) &&
        (day === undefined || timestamp.startsWith(day)),
    );
  }

  flush(): Promise<void> {
    return this.#mutex.run(() => Promise.resolve());
  }
}

/** A last line that was cut short by a crash is skipped. */
async function readEntries(path: string): Promise<AuditEntry[]> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  return text
    .split('\n')
    .slice(-KEPT)
    .flatMap((line) => (parseJson(line) as AuditEntry | undefined) ?? []);
}
