/*
 * The path of a sample:
 *
 *  1. SamplingClient.sample     starts a future: session/Lifecycle keeps it until it ends
 *  2. Samples.sample            checks the options (sampleRequest) and waits for one of 2000 places
 *  3. StallDetector             fails everything when nothing has finished for two hours
 *  4. retrySample               submits, and submits again when the promise is lost or after a temporary failure
 *  5. Samples.#submit           takes the next number
 *  6. SampleDispatcher          mergeMapWeighted: waits for a slot and for bytes; pauses on 429 and sends the same request again
 *  7. connection/Connection     one request: POST asample
 *  8. results/awaitResult       reads the promise, then polls alone or with others (SessionPoller)
 *  9. sampleRequest             completes the result, and checks that the service honoured the options
 */
import { concatMap, map, type Observable } from 'rxjs';
import { once } from '../../transport/once.js';
import { countTokens } from '../../wire/countTokens.js';
import { decodeSampleResponse } from '../../wire/proto/sampleResponse.js';
import {
  JoinSamplingSessionRequest,
  JoinSamplingSessionResponse,
  SampleResponseJson,
  type SampleResponse,
} from '../../wire/sampling.js';
import { SharedBudget } from '../connection/SharedBudget.js';
import { accept, awaitResult } from '../results/awaitResult.js';
import { SessionPoller } from '../results/SessionPoller.js';
import type { ResultFormat } from '../results/work.js';
import type { OpenSession } from '../session/Session.js';
import type { OnAccepted } from '../TinkerFuture.js';
import { retrySample, type SamplingRetryOptions } from './retrySample.js';
import {
  attachSequenceIds,
  checkHonoured,
  ignoredOptions,
  padPromptLogprobs,
  SampleRequest,
  type SampleOptions,
} from './sampleRequest.js';
import { StallDetector } from './StallDetector.js';

const SAMPLE: ResultFormat<SampleResponse> = { json: SampleResponseJson, protobuf: decodeSampleResponse };
const BACKPRESSURE = { 'x-tinker-sampling-backpressure': '1' };
const TWO_HOURS_MS = 120 * 60_000;
/** How many clones a sampler may have, and how many numbers each of them has. */
export const CLONES = 1_000_000_000;

interface SamplesOptions {
  readonly retry?: SamplingRetryOptions;
  readonly recordStabilityInfo?: boolean;
}

/** The samples of one client: their numbers, how many are in flight, and whether any of them makes progress. */
export class Samples {
  readonly #session: OpenSession;
  readonly #options: SamplesOptions;
  readonly #places: SharedBudget;
  readonly #stalls: StallDetector;
  /** The number of this clone, which the service may have to give. */
  readonly #clone: number | Observable<number>;
  #sent = 0;
  #poller: SessionPoller | undefined;

  constructor(
    session: OpenSession,
    readonly samplingSessionId: string,
    options: SamplesOptions,
    clone: number | 'join',
  ) {
    const { config, scheduler } = session.connection;
    this.#session = session;
    this.#options = options;
    this.#clone = clone === 'join' ? once(this.#join()) : clone;
    const most = config.sampleUseRetrieveFutures ? Infinity : config.sampleMaxConcurrentRequests;
    this.#places = new SharedBudget({ budget: Infinity, concurrency: most });
    const longestMs = config.sampleEnableStuckDetection ? (options.retry?.progressTimeoutMs ?? TWO_HOURS_MS) : Infinity;
    this.#stalls = new StallDetector(longestMs, scheduler);
  }

  /** @throws ValidationError before anything is sent. */
  sample(options: SampleOptions, onAccepted: OnAccepted): Observable<SampleResponse> {
    const { retry = {}, recordStabilityInfo = false } = this.#options;
    const request = new SampleRequest(options, this.samplingSessionId, recordStabilityInfo);
    const submit = (accepted: OnAccepted): Observable<SampleResponse> =>
      typeof this.#clone === 'number'
        ? this.#submit(request, options, this.#clone, accepted)
        : this.#clone.pipe(concatMap((clone) => this.#submit(request, options, clone, accepted)));
    const attempts = retrySample(this.#session.connection, this.samplingSessionId, retry, submit, onAccepted);
    return this.#places.run(0, this.#stalls.watch(attempts));
  }

  /** One submission and its result. A submission refused for its pace goes out again under the same number. */
  #submit(
    request: SampleRequest,
    options: SampleOptions,
    clone: number,
    onAccepted: OnAccepted,
  ): Observable<SampleResponse> {
    const { connection, dispatcher } = this.#session;
    const { bytes } = request;
    const number = this.#sent++;
    const seqId = clone * CLONES + number;
    // Past 2⁵³ a number is no longer exact, and two samples of a clone would have the same; its text is.
    const seqText = clone === 0 ? String(number) : String(BigInt(clone) * BigInt(CLONES) + BigInt(number));
    const startedMs = connection.scheduler.now();
    const sent = { requestType: 'Sample', target: this.samplingSessionId, seqId, bytes, startedMs } as const;
    const jsonText = (): string => request.text(seqText);
    const call = { path: 'asample', lane: 'sampling', jsonText, headers: BACKPRESSURE } as const;
    return dispatcher.dispatch(bytes, connection.attempt(call, connection.uuid())).pipe(
      concatMap((answer) => {
        const accepted = accept(connection, 'asample', sent, answer, onAccepted);
        return awaitResult(this.#session, accepted, SAMPLE, this.#pollerOf(clone)).pipe(
          map((response) => this.#finished(attachSequenceIds(response, accepted.promise), options)),
        );
      }),
    );
  }

  /** Reports the response, completes it, and checks that the service honoured the options. */
  #finished(response: SampleResponse, options: SampleOptions): SampleResponse {
    const { events } = this.#session.connection;
    this.#stalls.noteFinished();
    if (events.all.observed) {
      events.emit({
        type: 'tokens-used',
        requestType: 'Sample',
        target: this.samplingSessionId,
        prompt: countTokens(options.prompt),
        cached: response.promptCacheHitTokens,
        sampled: response.sequences.reduce((sum, { tokens }) => sum + tokens.length, 0),
        trained: 0,
      });
    }
    for (const option of ignoredOptions(response, options))
      events.emit({ type: 'option-ignored', target: this.samplingSessionId, option });
    return checkHonoured(padPromptLogprobs(response, options.prompt), options);
  }

  #join(): Observable<number> {
    const json = JoinSamplingSessionRequest.encode({
      samplingSessionId: this.samplingSessionId,
      type: 'join_sampling_session',
    });
    return this.#session.connection
      .call({ path: 'join_sampling_session', lane: 'session', json }, JoinSamplingSessionResponse)
      .pipe(map(({ clientCounter }) => clientCounter));
  }

  #pollerOf(clone: number): SessionPoller | undefined {
    if (!this.#session.connection.config.sampleUseRetrieveFutures) return undefined;
    return (this.#poller ??= new SessionPoller(this.#session.connection, this.samplingSessionId, clone));
  }
}
