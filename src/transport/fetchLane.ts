import { Observable, type Subscriber } from 'rxjs';
import type { BaseUrl } from './baseUrl.js';
import { failureOf } from './failureOf.js';
import { AnswerReader, headerFailure, type LanePool } from './LanePool.js';
import { TransportFailure, type TransportRequest, type TransportResponse } from './Transport.js';

/**
 * A lane over the runtime's own `fetch`. It is for Bun, which replaces undici with a module that carries nothing.
 * How many connections there are, and which of them are used again, is up to the runtime.
 */
export class FetchLane implements LanePool {
  readonly #running = new Set<Subscriber<TransportResponse>>();

  constructor(
    readonly baseUrl: BaseUrl,
    readonly mostBytes: number,
  ) {}

  send(request: TransportRequest): Observable<TransportResponse> {
    return new Observable((subscriber) => {
      const failure = headerFailure(request.headers);
      if (failure !== undefined) return subscriber.error(failure);
      const abort = new AbortController();
      const answer = new AnswerReader(subscriber, this.mostBytes);
      answer.abort = () => abort.abort();
      this.#running.add(subscriber);
      subscriber.add(() => {
        this.#running.delete(subscriber);
        abort.abort();
      });
      this.#carry(request, answer, abort.signal).catch((error: unknown) =>
        subscriber.error(failureOf(error, answer.status !== 0)),
      );
    });
  }

  async close(): Promise<void> {
    const ended = [...this.#running].map((subscriber) => new Promise<void>((resolve) => subscriber.add(resolve)));
    await Promise.all(ended);
  }

  async destroy(): Promise<void> {
    for (const subscriber of [...this.#running])
      subscriber.error(new TransportFailure('connection', 'the client is destroyed'));
  }

  async #carry(request: TransportRequest, answer: AnswerReader, signal: AbortSignal): Promise<void> {
    const { method, path, headers, body = null } = request;
    const init = { method, headers, body: body as string | null, signal, redirect: 'manual' } as const;
    const response = await fetch(this.baseUrl.href + path, init);
    answer.start(response.status, Object.fromEntries(response.headers));
    for await (const chunk of response.body ?? []) answer.data(Buffer.from(chunk as Uint8Array));
    answer.end();
  }
}
