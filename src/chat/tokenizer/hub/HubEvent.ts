/** What happens to one file of a repository, from the first byte to its place in the cache. */
export type HubEvent =
  | {
      /** Part of a file has arrived. */
      readonly type: 'file-progress';
      /** The repository on the hub. */
      readonly repo: string;
      /** The file's name in the repository. */
      readonly file: string;
      /** Bytes at hand, those of an earlier, interrupted download included. */
      readonly receivedBytes: number;
      /** The file's size in bytes, if the server reports it. */
      readonly totalBytes: number | undefined;
    }
  | {
      /** A file is on disk. */
      readonly type: 'file-ready';
      /** The repository on the hub. */
      readonly repo: string;
      /** The file's name in the repository. */
      readonly file: string;
      /** Where it is. */
      readonly path: string;
      /** Whether it was there before. */
      readonly cached: boolean;
    }
  | {
      /** The repository does not have this file. */
      readonly type: 'file-absent';
      /** The repository on the hub. */
      readonly repo: string;
      /** The file's name in the repository. */
      readonly file: string;
    }
  /** The connection or the server failed; the file is asked for again after the delay. */
  | {
      /** A download failed and is tried again. */
      readonly type: 'file-retry';
      /** The repository on the hub. */
      readonly repo: string;
      /** The file's name in the repository. */
      readonly file: string;
      /** How many tries have failed so far. */
      readonly attempt: number;
      /** When, in milliseconds from now. */
      readonly delayMs: number;
      /** Why it failed. */
      readonly reason: string;
    };
