import { HttpError } from '../http/httpError.js';
import type { LocalFuture } from './localFuture.js';

/** More than any client has in flight; a retry comes soon after the first try. */
const KEPT = 10_000;

/** The last requests by sequence number, to tell a retry from a new request that uses the same number. */
export class RecentRequests {
  readonly #entries = new Map<number | bigint, { readonly digest: string; readonly future: LocalFuture }>();

  /** The future of the same request. @throws HttpError 409 when the number was used for other content. */
  find(seqId: number | bigint, digest: string): LocalFuture | undefined {
    const known = this.#entries.get(seqId);
    if (known === undefined) return undefined;
    if (known.digest !== digest) throw new HttpError(409, `seq_id ${seqId} was already used for another request`);
    return known.future;
  }

  add(seqId: number | bigint, digest: string, future: LocalFuture): void {
    this.#entries.set(seqId, { digest, future });
    if (this.#entries.size <= KEPT) return;
    const [oldest] = this.#entries.keys();
    if (oldest !== undefined) this.#entries.delete(oldest);
  }
}
