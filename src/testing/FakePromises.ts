import { Subject, filter, map, merge, startWith, take, timer, type Observable, type SchedulerLike } from 'rxjs';
import type { TransportResponse } from '../transport/Transport.js';
import { after, json, refusal } from './answers.js';
import type { FakeRequest } from './FakeRequest.js';

interface Promised {
  readonly requestId: string;
  readonly readyMs: number;
  readonly result: (poll: FakeRequest) => TransportResponse;
  /** The sampling session and clone that a session poll asks for. */
  readonly owner: string | undefined;
}

/** A poll is held this long before it is told "not yet". */
const HOLD_MS = 40_000;
const SESSION_HOLD_MS = 30_000;
const CLONE_BLOCK = 1_000_000_000n;

/** The work that the fake service has accepted, and when each piece is done. */
export class FakePromises {
  readonly #promises = new Map<string, Promised>();
  readonly #finished = new Subject<void>();

  constructor(
    readonly scheduler: SchedulerLike,
    readonly workMs: (request: FakeRequest) => number,
  ) {}

  /** Accepts work; the answer is the promise of it. The same id again is the same work, as an idempotent server has it. */
  accept(
    requestId: string,
    request: FakeRequest,
    result: (poll: FakeRequest) => TransportResponse,
    extra: Readonly<Record<string, unknown>> = {},
  ): TransportResponse {
    if (!this.#promises.has(requestId)) {
      const workMs = this.workMs(request);
      const session = request.json['sampling_session_id'];
      const owner =
        request.path === 'asample' ? `${String(session)} ${BigInt(request.seqText) / CLONE_BLOCK}` : undefined;
      this.#promises.set(requestId, { requestId, readyMs: this.scheduler.now() + workMs, result, owner });
      if (workMs > 0) this.scheduler.schedule(() => this.#finished.next(), workMs);
      else this.#finished.next();
    }
    return json({ request_id: requestId, ...extra });
  }

  /** Answers a poll: at once where the work is done, when it is done otherwise, and after 40 seconds with "not yet". */
  poll(request: FakeRequest): TransportResponse | Observable<TransportResponse> {
    const promised = this.#promises.get(request.requestId ?? '');
    if (promised === undefined) return refusal(404, `no such future`);
    const waitMs = promised.readyMs - this.scheduler.now();
    if (waitMs <= 0) return promised.result(request);
    return waitMs <= HOLD_MS
      ? after(waitMs, promised.result(request), this.scheduler)
      : after(HOLD_MS, json({ type: 'try_again', queue_state: 'active' }, { status: 408 }), this.scheduler);
  }

  /** Answers a poll for a whole sampling session with what has finished since the cursor. */
  pollSession(request: FakeRequest): Observable<TransportResponse> {
    const target = request.json['target'] as { sampling_session_id: string; cloned_sampler_id: number };
    const owner = `${target.sampling_session_id} ${target.cloned_sampler_id}`;
    const cursor = Number(request.json['prev_cursor']);
    const news = (): readonly Promised[] => this.#doneOf(owner).slice(cursor);
    return merge(
      this.#finished.pipe(
        startWith(undefined),
        map(news),
        filter((done) => done.length > 0),
      ),
      timer(SESSION_HOLD_MS, this.scheduler).pipe(map(news)),
    ).pipe(
      take(1),
      map((done) =>
        json({
          completions: done.map(({ requestId }) => ({ state: 'finished', request_id: requestId })),
          cursor: cursor + done.length,
        }),
      ),
    );
  }

  #doneOf(owner: string): Promised[] {
    const nowMs = this.scheduler.now();
    return [...this.#promises.values()]
      .filter((promised) => promised.owner === owner && promised.readyMs <= nowMs)
      .sort((one, other) => one.readyMs - other.readyMs);
  }
}
