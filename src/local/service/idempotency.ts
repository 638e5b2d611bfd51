import type { Reply } from '../http/reply.js';
import type { RequestContext } from '../http/requestContext.js';

const KEPT = 1000;

/** Remembers the answers to POSTs that carry an `X-Idempotency-Key`, so that a retry does not do the work twice. */
export class Idempotency {
  readonly #answers = new Map<string, Promise<Reply>>();

  /** Runs `handle` unless the same key already did; a failure is not remembered. */
  once(context: RequestContext, handle: () => Promise<Reply>): Promise<Reply> {
    const key = context.header('x-idempotency-key');
    if (key === undefined) return handle();
    const name = `${context.endpoint} ${key}`;
    const known = this.#answers.get(name);
    if (known !== undefined) return known;
    const answer = handle().then(inOwnMemory);
    this.#answers.set(name, answer);
    answer.catch(() => this.#answers.delete(name));
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > KEPT && oldest !== undefined) this.#answers.delete(oldest);
    return answer;
  }
}

/** Small buffers are cut from pools of 8 kB: one that is kept for long would keep all of its pool. */
function inOwnMemory(reply: Reply): Reply {
  const { body } = reply;
  return body instanceof Uint8Array ? { ...reply, body: new Uint8Array(body) } : reply;
}
