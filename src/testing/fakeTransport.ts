import { Observable, ReplaySubject, type SchedulerLike } from 'rxjs';
import type { Transport, TransportRequest, TransportResponse } from '../transport/Transport.js';
import { after, toObservable, type Answer } from './answers.js';
import { ENDPOINTS, otherEndpoint, type Endpoint, type FakeWork } from './fakeEndpoints.js';
import { FakePromises } from './FakePromises.js';
import { FakeRequest } from './FakeRequest.js';
import { checkScriptPaths, type ScriptPath } from './internal/scriptPaths.js';
import { endSomeTime } from './internal/endSomeTime.js';

/** One answer, or what makes one; a function that returns undefined leaves the request to the built-in service. */
export type Reply = Answer | ((request: FakeRequest) => Answer | undefined);

/**
 * Replies other than success, by path below `/api/v1/`: one reply for every request, or a list, one per request
 * in order, after which the built-in service answers again.
 *
 * Polls may also be scripted by what they wait for: `'retrieve_future OptimStep'`. A path that no client asks for is a RangeError.
 */
export type Script = Readonly<Partial<Record<ScriptPath, Reply | readonly Reply[]>>>;

/** Options of `fakeTransport`. */
export interface FakeTransportOptions extends FakeWork {
  /**
   * The clock of the test: a {@link VirtualClock}, or RxJS's TestScheduler. One of the latter that would run without end, because its
   * `maxFrames` is infinite, is ended after an hour: a client's heartbeat never ends.
   */
  readonly scheduler: SchedulerLike;
  /** Answers to requests, tried before the built-in ones. Default: none. */
  readonly script?: Script;
  /** Time from a request to its answer. Default 0: answered before the call returns. */
  readonly latencyMs?: number | ((request: FakeRequest) => number);
  /** Time from accepting work to its result. Default 0. */
  readonly workMs?: number | ((request: FakeRequest) => number);
}

/** A transport without a network, and what was sent through it. */
export interface FakeTransport {
  /** Give it to a client as `transport`. */
  readonly transport: Transport;
  /** Everything that was sent so far, in order. */
  readonly requests: readonly FakeRequest[];
  /** The same as a stream, from the first request on, for marble diagrams. */
  readonly requests$: Observable<FakeRequest>;
  /** The requests to one path. */
  readonly to: (path: string) => readonly FakeRequest[];
  /** Options that make a client talk to this fake, by this clock, without chance: `new ServiceClient(fake.clientOptions)`. */
  readonly clientOptions: {
    /** A made-up key. */
    readonly apiKey: string;
    /** A made-up address. */
    readonly baseUrl: string;
    /** The fake transport. */
    readonly transport: Transport;
    /** The test's clock. */
    readonly scheduler: SchedulerLike;
    /** The same numbers in every run. */
    readonly random: () => number;
    /** The same ids in every run. */
    readonly uuid: () => string;
    /** False: no telemetry is sent. */
    readonly telemetry: boolean;
    /** `silent`: nothing is logged. */
    readonly logLevel: 'silent';
  };
}

/**
 * A service without sockets: it accepts work, promises results and gives them, at the times the test wants, and fails
 * if the script says so. Each model's work runs in the order of its numbers, as at the service: work whose number is
 * ahead waits until every lower one has arrived.
 *
 * ```ts
 * const clock = new VirtualClock();
 * const fake = fakeTransport({ scheduler: clock, script: { asample: [refusal(429), dropped()] } });
 * const service = new ServiceClient(fake.clientOptions);
 * const sampler = clock.resolve(service.createSamplingClient({ baseModel: 'any' }));
 * clock.resolve(sampler.sample({ prompt: ModelInput.fromInts([1]) }));
 * fake.to('asample').map(({ atMs }) => atMs); // [0, 1000, 2000]
 * ```
 * In a marble test a reply is a diagram: `script: { optim_step: [m.cold('5s a|', { a: refusal(503) })] }`.
 */
export function fakeTransport(options: FakeTransportOptions): FakeTransport {
  const { scheduler, script = {}, latencyMs = 0, workMs = 0 } = options;
  checkScriptPaths(Object.keys(script));
  endSomeTime(scheduler);
  const promises = new FakePromises(scheduler, valueFor(workMs), options.speaks === 'json' ? 'arrival' : 'seq_id');
  const latencyOf = valueFor(latencyMs);
  const requests: FakeRequest[] = [];
  const requests$ = new ReplaySubject<FakeRequest>();
  const used = new Map<string, number>();
  let keys = 0;

  const scripted = (request: FakeRequest): Answer | undefined => {
    for (const key of [`${request.path} ${request.headers['x-tinker-request-type'] ?? ''}`, request.path]) {
      const entry = script[key as ScriptPath];
      if (entry === undefined) continue;
      const nth = used.get(key) ?? 0;
      used.set(key, nth + 1);
      const reply = isList(entry) ? entry[nth] : entry;
      const answer = typeof reply === 'function' ? reply(request) : reply;
      if (answer !== undefined) return answer;
    }
    return undefined;
  };
  const builtIn = (request: FakeRequest): Answer =>
    ((ENDPOINTS as Readonly<Record<string, Endpoint>>)[request.path] ?? otherEndpoint)(request, promises, options);

  const transport: Transport = (wire: TransportRequest) =>
    new Observable<TransportResponse>((subscriber) => {
      const request = new FakeRequest(wire, scheduler.now());
      const end = (state: FakeRequest['state']): void => {
        if (request.state !== 'open') return;
        request.state = state;
        request.endedMs = scheduler.now();
      };
      requests.push(request);
      requests$.next(request);
      const byScript = scripted(request);
      const answer = byScript ?? builtIn(request);
      const delayMs = latencyOf(request);
      subscriber.add(() => end('aborted'));
      subscriber.add(
        (delayMs > 0 ? after(delayMs, answer, scheduler) : toObservable(answer)).subscribe({
          next: (response) => {
            if (byScript !== undefined && response.status < 300) promises.acceptedByScript(request);
            end('answered');
            subscriber.next(response);
          },
          error: (error: unknown) => {
            end('failed');
            subscriber.error(error);
          },
          complete: () => subscriber.complete(),
        }),
      );
    });

  return {
    transport,
    requests,
    requests$: requests$.asObservable(),
    to: (path) => requests.filter((request) => request.path === path),
    clientOptions: {
      apiKey: 'tml-fake',
      baseUrl: 'http://fake.test',
      transport,
      scheduler,
      random: () => 0.5,
      uuid: () => `uuid-${keys++}`,
      telemetry: false,
      logLevel: 'silent',
    },
  };
}

const isList = (entry: Reply | readonly Reply[]): entry is readonly Reply[] => Array.isArray(entry);

const valueFor = (value: number | ((request: FakeRequest) => number)): ((request: FakeRequest) => number) =>
  typeof value === 'function' ? value : () => value;
