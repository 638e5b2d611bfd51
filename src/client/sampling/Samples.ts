/*
 * The path of a sample:
 *
 *  1. SamplingClient.sample     starts a future: session/Lifecycle keeps it until it ends
 *  2. Samples.sample            checks the options (sampleRequest) and waits for one of 2000 places
 *  3. Progress.watch            fails everything when nothing has finished for two hours
 *  4. resubmitting              submits, and submits again when the promise is lost or after a temporary failure
 *  5. Samples.#submitAs         takes the next number
 *  6. SampleDispatcher          waits for a slot and for bytes; pauses on 429 and sends the same request again
 *  7. connection/Connection     one request: POST asample
 *  8. results/awaitResult       reads the promise, then polls by itself (retrieve) or with others (SessionPoller)
 *  9. sampleChecks              completes the result, and checks that the service honoured the options
 */
import { concatMap, map, type Observable } from 'rxjs';
import { countTokens } from '../../wire/countTokens.js';
import { estimatePromptBytes } from '../../wire/estimateBytes.js';
import { decodeSampleResponse } from '../../wire/proto/sampleResponse.js';
import {
  JoinSamplingSessionRequest,
  JoinSamplingSessionResponse,
  SampleResponseJson,
  type SampleResponse,
} from '../../wire/sampling.js';
import { Budget } from '../connection/Budget.js';
import { onAnswer } from '../connection/onAnswer.js';
import { once } from '../connection/once.js';
import { accept, awaitResult } from '../results/awaitResult.js';
import type { ResultFormat } from '../results/work.js';
import { SessionPoller } from '../results/SessionPoller.js';
import type { OpenSession } from '../session/Session.js';
import type { FutureProgress } from '../TinkerFuture.js';
import { Progress } from './Progress.js';
import { resubmitting, type SamplingRetryOptions, type Submission } from './resubmitting.js';
import { refuseAbsent } from '../profile.js';
import { attachSequenceIds, checkHonoured, featuresOf, ignoredOptions, padPromptLogprobs } from './sampleChecks.js';
import { SampleRequests, type SampleBody, type SampleOptions } from './sampleRequest.js';

const SAMPLE: ResultFormat<SampleResponse> = { json: SampleResponseJson, protobuf: decodeSampleResponse };
const BACKPRESSURE = { 'x-tinker-sampling-backpressure': '1' };
const TWO_HOURS_MS = 120 * 60_000;
/** How many clones a sampler may have, and how many numbers each of them has. */
export const CLONES = 1_000_000_000;

/** The samples of one client: their numbers, how many are in flight, and whether any of them makes progress. */
export class Samples {
  readonly #session: OpenSession;
  readonly #retry: SamplingRetryOptions | undefined;
  readonly #requests: SampleRequests;
  readonly #places: Budget;
  readonly #progress: Progress | undefined;
  /** undefined until the service has said which number this clone has. */
  #clone: number | undefined;
  readonly #joined: Observable<number>;
  #sent = 0;
  #poller: SessionPoller | undefined;

  constructor(
    session: OpenSession,
    readonly samplingSessionId: string,
    {
      retry,
      recordStabilityInfo = false,
    }: {
      readonly retry?: SamplingRetryOptions;
      readonly recordStabilityInfo?: boolean;
    },
    clone: number | 'join',
  ) {
    const { config, scheduler } = session.connection;
    this.#session = session;
    this.#retry = retry;
    this.#requests = new SampleRequests(samplingSessionId, recordStabilityInfo);
    this.#clone = clone === 'join' ? undefined : clone;
    this.#joined = once(this.#join());
    const most = config.sampleUseRetrieveFutures ? Infinity : config.sampleMaxConcurrentRequests;
    this.#places = new Budget(most, 'hard', { door: session.dispatcher });
    this.#progress = config.sampleEnableStuckDetection
      ? new Progress(retry?.progressTimeoutMs ?? TWO_HOURS_MS, scheduler)
      : undefined;
  }

  /** @throws ValidationError before anything is sent. */
  sample(options: SampleOptions, progress: FutureProgress): Observable<SampleResponse> {
    const body = this.#requests.body(options);
    const { profile } = this.#session.connection;
    if (profile !== undefined) for (const feature of featuresOf(options)) refuseAbsent(profile, feature);
    const sample: Submission<SampleResponse> = new OneSample(this, body, options, progress);
    // Built once it has a slot, so that a sample cancelled while waiting takes no number.
    const attempts = (): Observable<SampleResponse> => {
      const work = resubmitting(this.#session.connection, this.samplingSessionId, this.#retry, sample);
      return this.#progress?.watch(work) ?? work;
    };
    return this.#places.hold(1, attempts);
  }

  /** Tells of the response, completes it, and checks that the service honoured the options. */
  finished(response: SampleResponse, options: SampleOptions): SampleResponse {
    this.#progress?.made();
    this.#tellTokens(response, options);
    for (const option of ignoredOptions(response, options)) {
      this.#session.connection.events.emit({ type: 'option-ignored', target: this.samplingSessionId, option });
    }
    return checkHonoured(padPromptLogprobs(response, options.prompt), options);
  }

  #tellTokens({ sequences, promptCacheHitTokens }: SampleResponse, { prompt }: SampleOptions): void {
    const { events } = this.#session.connection;
    if (!events.observed) return;
    events.emit({
      type: 'tokens-used',
      requestType: 'Sample',
      target: this.samplingSessionId,
      prompt: countTokens(prompt),
      cached: promptCacheHitTokens,
      sampled: sequences.reduce((sum, { tokens }) => sum + tokens.length, 0),
      trained: 0,
    });
  }

  /** One submission and its result. A submission refused for its pace goes out again under the same number. */
  submit(body: SampleBody, bytes: number, progress: FutureProgress): Observable<SampleResponse> {
    const clone = this.#clone;
    return clone === undefined
      ? this.#joined.pipe(concatMap((joined) => this.#submitAs(joined, body, bytes, progress)))
      : this.#submitAs(clone, body, bytes, progress);
  }

  #submitAs(clone: number, body: SampleBody, bytes: number, progress: FutureProgress): Observable<SampleResponse> {
    const { connection, dispatcher } = this.#session;
    const number = this.#sent++;
    const seqId = clone * CLONES + number;
    // Past 2⁵³ a number is no longer exact, and two samples of a clone would have the same; its text is.
    const seqText = clone === 0 ? String(number) : String(BigInt(clone) * BigInt(CLONES) + BigInt(number));
    const startedMs = connection.scheduler.now();
    const sent = { requestType: 'Sample', target: this.samplingSessionId, seqId, bytes, startedMs } as const;
    const idempotencyKey = connection.uuid();
    const response = dispatcher.dispatch(bytes, () =>
      connection.attempt(
        {
          path: 'asample',
          lane: 'sampling',
          writeJson: () => this.#requests.text(body, seqText),
          headers: BACKPRESSURE,
        },
        idempotencyKey,
      ),
    );
    return onAnswer(response, (answer) => {
      const accepted = accept(connection, 'asample', sent, answer, progress);
      return awaitResult(this.#session, accepted, SAMPLE, this.#pollerOf(clone), attachSequenceIds);
    });
  }

  #join(): Observable<number> {
    const json = JoinSamplingSessionRequest.encode({
      samplingSessionId: this.samplingSessionId,
      type: 'join_sampling_session',
    });
    return this.#session.connection
      .call({ path: 'join_sampling_session', lane: 'session', json }, JoinSamplingSessionResponse)
      .pipe(
        map(({ clientCounter }) => {
          this.#clone = clientCounter;
          return clientCounter;
        }),
      );
  }

  #pollerOf(clone: number): SessionPoller | undefined {
    if (!this.#session.connection.config.sampleUseRetrieveFutures) return undefined;
    return (this.#poller ??= new SessionPoller(this.#session.connection, this.samplingSessionId, clone));
  }
}

/** One sample of a client: an object instead of closures, since thousands may be in flight. */
class OneSample implements Submission<SampleResponse> {
  readonly #bytes: number;

  constructor(
    readonly samples: Samples,
    readonly body: SampleBody,
    readonly options: SampleOptions,
    readonly progress: FutureProgress,
  ) {
    this.#bytes = estimatePromptBytes(options.prompt);
  }

  submit(accepting: FutureProgress): Observable<SampleResponse> {
    return this.samples.submit(this.body, this.#bytes, accepting);
  }

  finish(response: SampleResponse): SampleResponse {
    return this.samples.finished(response, this.options);
  }

  accepted(requestId: string): void {
    this.progress.accepted(requestId);
  }
}
