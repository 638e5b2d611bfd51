import {
  Subject,
  concatMap,
  filter,
  map,
  merge,
  of,
  startWith,
  take,
  timer,
  type Observable,
  type SchedulerLike,
} from 'rxjs';
import type { TransportResponse } from '../transport/Transport.js';
import { after, json, refusal } from './answers.js';
import type { FakeRequest } from './FakeRequest.js';
import { FakeTurns } from './FakeTurns.js';

interface Promised {
  readonly requestId: string;
  readonly body: FakeRequest['body'];
  /** The model whose turn it is. */
  readonly modelId: string | undefined;
  /** undefined while it waits for work with a lower number. */
  readyMs: number | undefined;
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
  readonly #started = new Subject<Promised>();
  readonly #turns = new FakeTurns();

  constructor(
    readonly scheduler: SchedulerLike,
    readonly workMs: (request: FakeRequest) => number,
    /** `arrival` ignores the numbers, as SkyRL does. */
    readonly order: 'seq_id' | 'arrival',
  ) {}

  /**
   * Accepts work; the answer is the promise of it. The same request again is the same work, as an idempotent server has
   * it; a used number with other content is a 409.
   */
  accept(
    requestId: string,
    request: FakeRequest,
    result: (poll: FakeRequest) => TransportResponse,
    extra: Readonly<Record<string, unknown>> = {},
  ): TransportResponse {
    const known = this.#promises.get(requestId);
    if (known === undefined) this.#add(requestId, request, result);
    else if (known.modelId !== undefined && !sameBody(known.body, request.body))
      return refusal(409, `seq_id ${request.seqText} was already used for another request`);
    return json({ request_id: requestId, ...extra });
  }

  #add(requestId: string, request: FakeRequest, result: Promised['result']): void {
    const { path, seqId, body } = request;
    const workMs = this.workMs(request);
    const session = request.json['sampling_session_id'];
    const owner = path === 'asample' ? `${String(session)} ${BigInt(request.seqText) / CLONE_BLOCK}` : undefined;
    const modelId = this.order === 'seq_id' && path !== 'asample' ? request.modelId : undefined;
    const promised: Promised = { requestId, body, modelId, readyMs: undefined, result, owner };
    this.#promises.set(requestId, promised);
    const start = (): void => {
      promised.readyMs = this.scheduler.now() + workMs;
      this.#started.next(promised);
      if (workMs > 0) this.scheduler.schedule(() => this.#finished.next(), workMs);
      else this.#finished.next();
    };
    if (modelId === undefined || seqId === undefined) start();
    else this.#turns.arrive(modelId, seqId, start);
  }

  /** Work that the script accepted in the service's place: its number is taken. */
  acceptedByScript({ modelId, seqId, path }: FakeRequest): void {
    if (modelId !== undefined && seqId !== undefined && path !== 'asample') this.#turns.arrive(modelId, seqId);
  }

  /** Answers a poll: at once if the work is done, when it is done otherwise, and after 40 seconds with "not yet". */
  poll(request: FakeRequest): TransportResponse | Observable<TransportResponse> {
    const promised = this.#promises.get(request.requestId ?? '');
    if (promised === undefined) return refusal(404, `no such future`);
    if (promised.readyMs === undefined) return this.#whenStarted(promised, request);
    const waitMs = promised.readyMs - this.scheduler.now();
    if (waitMs <= 0) return promised.result(request);
    return waitMs <= HOLD_MS
      ? after(waitMs, promised.result(request), this.scheduler)
      : after(HOLD_MS, json({ type: 'try_again', queue_state: 'active' }, { status: 408 }), this.scheduler);
  }

  #whenStarted(promised: Promised, request: FakeRequest): Observable<TransportResponse> {
    const started = this.#started.pipe(filter((one) => one === promised));
    return merge(started, timer(HOLD_MS, this.scheduler).pipe(map(() => undefined))).pipe(
      take(1),
      concatMap((ready) => {
        if (ready === undefined) {
          const reason = `waiting for seq_id ${this.#turns.next(promised.modelId!)}`;
          return of(json({ type: 'try_again', queue_state: 'active', queue_state_reason: reason }, { status: 408 }));
        }
        const answer = this.poll(request);
        return 'status' in answer ? of(answer) : answer;
      }),
    );
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
      .filter(({ owner: its, readyMs = Infinity }) => its === owner && readyMs <= nowMs)
      .sort((one, other) => one.readyMs! - other.readyMs!);
  }
}

function sameBody(one: FakeRequest['body'], other: FakeRequest['body']): boolean {
  if (!(one instanceof Uint8Array) || !(other instanceof Uint8Array)) return one === other;
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}
