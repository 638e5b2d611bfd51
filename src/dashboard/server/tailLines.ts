import { open, type FileHandle } from 'node:fs/promises';
import { Observable, type SchedulerLike } from 'rxjs';

const BLOCK_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;

/** The lines a file has gained; `fresh` when it is another file than before, or the first. */
export interface TailedLines {
  readonly fresh: boolean;
  readonly lines: readonly string[];
}

/**
 * The lines of a file, existing and new ones, until unsubscribed.
 *
 * Looks every `everyMs`, so it works on every file system. Waits for a file that does not exist yet. One that was
 * replaced or got shorter is read again from its start. A last line without its newline is left until it has it.
 * Never errors and never completes. Holds one block of the file.
 */
export function tailLines(path: string, everyMs: number, scheduler: SchedulerLike): Observable<TailedLines> {
  return new Observable((subscriber) => {
    let offset = 0;
    let file = '';
    let rest: Buffer = Buffer.alloc(0);

    const readMore = async (handle: FileHandle): Promise<void> => {
      const { ino, size } = await handle.stat();
      const fresh = String(ino) !== file || size < offset;
      if (fresh) {
        file = String(ino);
        offset = 0;
        rest = Buffer.alloc(0);
        subscriber.next({ fresh, lines: [] });
      }
      const block = Buffer.alloc(Math.min(BLOCK_BYTES, Math.max(0, size - offset)));
      while (offset < size && !subscriber.closed) {
        const { bytesRead } = await handle.read(block, 0, Math.min(block.length, size - offset), offset);
        if (bytesRead === 0) return;
        offset += bytesRead;
        const all = Buffer.concat([rest, block.subarray(0, bytesRead)]);
        const end = all.lastIndexOf(NEWLINE);
        rest = Buffer.from(all.subarray(end + 1));
        if (end < 0) continue;
        const lines = all.toString('utf8', 0, end).split('\n');
        subscriber.next({ fresh: false, lines });
      }
    };
    const look = async (): Promise<void> => {
      try {
        const handle = await open(path, 'r');
        try {
          await readMore(handle);
        } finally {
          await handle.close();
        }
      } catch {
        // Not there, or not now: the next look may find it.
      }
      if (!subscriber.closed) subscriber.add(scheduler.schedule(() => void look(), everyMs));
    };
    void look();
  });
}
