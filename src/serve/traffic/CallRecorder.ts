import type { RecordedCall, RecordedFeedback } from '../../sources/fromRecorded.js';
import { JsonlFile } from '../../support/files/jsonlFile.js';
import { withImageUrls } from './withImageUrls.js';
import { holdsKey, withoutKeys } from './withoutKeys.js';

/** Options of `recordCalls`. */
export interface RecordCallsOptions {
  /**
   * Edits what is written, or leaves it out by returning undefined: names, addresses, whatever may not be kept. Given calls and feedback,
   * which have another `type`. If it throws, the line is not written. Default: it is written as it is.
   */
  readonly redact?: (line: RecordedCall | RecordedFeedback) => RecordedCall | RecordedFeedback | undefined;
  /** Texts that are never written, wherever they stand. Keys of the gateway and of its upstream are among them. Default: none. */
  readonly secrets?: readonly string[];
  /** Told of a call that could not be written. Default: nobody is. */
  readonly onError?: (error: unknown) => void;
}

/** What a caller sends to `POST /feedback`. */
export type Feedback = Omit<RecordedFeedback, 'type' | 'at'>;

/** Writes calls and what people think of them into a file, one line each. Headers are never part of a call. */
export class CallRecorder {
  readonly #file: JsonlFile;
  readonly #options: RecordCallsOptions;
  readonly #secrets = new Set<string>();

  constructor(path: string, options: RecordCallsOptions = {}) {
    this.#options = options;
    this.addSecrets(options.secrets ?? []);
    this.#file = new JsonlFile(path);
  }

  /** Texts that must not be in the file from now on. */
  addSecrets(secrets: readonly string[]): void {
    for (const secret of secrets) if (secret.length >= 4) this.#secrets.add(secret);
  }

  /** Writes a call. Never throws: traffic must not fail for its log. */
  record(call: RecordedCall): void {
    this.#write(call);
  }

  /** Writes a rating or a correction of a call. */
  feedback(feedback: Feedback): void {
    this.#write({ type: 'feedback', ...feedback, at: new Date().toISOString() });
  }

  /** Brings what was written to the disk. */
  close(): void {
    this.#file.close();
  }

  #write(line: RecordedCall | RecordedFeedback): void {
    const { redact = (same) => same } = this.#options;
    try {
      const kept = redact(line);
      if (kept !== undefined) this.#file.append(this.#clean(withImageUrls(kept)));
    } catch (error) {
      this.#options.onError?.(error);
    }
  }

  /** The value without secrets in any of its texts. */
  #clean(value: unknown): unknown {
    if (typeof value === 'string') return withoutKeys(value, this.#secrets);
    if (Array.isArray(value)) return value.map((entry) => this.#clean(entry));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, entry]) => [
        withoutKeys(name, this.#secrets),
        typeof entry === 'string' && holdsKey(name) ? '[redacted]' : this.#clean(entry),
      ]),
    );
  }
}

/**
 * Records calls into a JSONL file, for `serveSampler`, `serveUpstream` and the middleware of `tinker-rx/ai-sdk`. Read it with `fromRecorded`.
 *
 * ```ts
 * const gateway = await serveUpstream({ upstream: 'https://api.openai.com/v1', record: recordCalls('calls.jsonl') });
 * ```
 * What looks like a key, or stands where keys stand (headers, queries of URLs, fields such as `password`), is replaced.
 */
export const recordCalls = (path: string, options?: RecordCallsOptions): CallRecorder =>
  new CallRecorder(path, options);
