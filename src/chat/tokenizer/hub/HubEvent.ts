/** What happens to one file of a repository, from the first byte to its place in the cache. */
export type HubEvent =
  | {
      readonly type: 'file-progress';
      readonly repo: string;
      readonly file: string;
      /** Bytes at hand, those of an earlier, interrupted download included. */
      readonly receivedBytes: number;
      readonly totalBytes: number | undefined;
    }
  | {
      readonly type: 'file-ready';
      readonly repo: string;
      readonly file: string;
      readonly path: string;
      readonly cached: boolean;
    }
  | { readonly type: 'file-absent'; readonly repo: string; readonly file: string }
  /** The connection or the server failed; the file is asked for again after the delay. */
  | {
      readonly type: 'file-retry';
      readonly repo: string;
      readonly file: string;
      /** How many tries have failed so far. */
      readonly attempt: number;
      readonly delayMs: number;
      readonly reason: string;
    };
