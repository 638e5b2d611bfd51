import { concatMap, defer, map, of, type Observable, type SchedulerLike } from 'rxjs';
import type { TokenSource } from '../transport/auth.js';
import type { Transport } from '../transport/Transport.js';
import type { ModelInput } from '../wire/modelInput.js';
import { GetSamplerResponse, type SampleResponse } from '../wire/sampling.js';
import type { RendererName } from '../chat/renderers/registry.js';
import type { Renderer, ResponseDelta } from '../chat/renderers/core/Renderer.js';
import type { Tokenizer } from '../chat/tokenizer/Tokenizer.js';
import { optionNames, type CallOptions } from './CallOptions.js';
import { rendererOf, tokenizerOf } from './chat.js';
import { APIResponseValidationError } from './errors.js';
import type { TinkerEvent, WorkKind } from './events.js';
import type { Lifecycle } from './session/Lifecycle.js';
import type { LogLevel } from './session/log.js';
import { once } from '../transport/once.js';
import { withoutUndefined } from '../wire/record.js';
import type { SampleOptions } from './sampling/sampleRequest.js';
import type { SamplingRetryOptions } from './sampling/retrySample.js';
import {
  replyDeltas,
  replyOnce,
  type Asked,
  type ReplyOptions,
  type ReplyStreamOptions,
  type SampledReply,
} from './sampling/reply.js';
import { segments } from './rest/restQuery.js';
import { Samples } from './sampling/Samples.js';
import { openSharedSession, toSamplerHandle } from './sampling/samplerHandle.js';
import type { OpenSession } from './session/Session.js';
import { TinkerFuture } from './TinkerFuture.js';

export type { Asked, ReplyOptions, ReplyStreamOptions, SampledReply } from './sampling/reply.js';
export type { SampleOptions } from './sampling/sampleRequest.js';
export type { SamplingRetryOptions } from './sampling/retrySample.js';
/** Options of everything that creates a sampling client. */
export interface SamplingClientOptions {
  /** How samples are retried. Default: for as long as any sample of the client finishes. */
  readonly retry?: SamplingRetryOptions;
  /** Has the service keep what stable_reinforce needs of each sequence. Default false. */
  readonly recordStabilityInfo?: boolean;
}

/** Options of `SamplingClient.computeLogprobs`. */
export interface ComputeLogprobsOptions extends CallOptions {
  /** Score only the last n prompt tokens. Default: all of them. */
  readonly lastN?: number;
}

/** What `SamplingClient.fromSamplerHandle` takes: the handle names the service, this process brings its own credentials. */
export interface FromHandleOptions {
  /** Default: `TINKER_API_KEY`, the output of `TINKER_CREDENTIAL_CMD`, or the stored key. */
  readonly apiKey?: string;
  /** How requests travel. Default: real sockets. */
  readonly transport?: Transport;
  /** All waiting goes through it. Default RxJS's asyncScheduler. */
  readonly scheduler?: SchedulerLike;
  /** Numbers from 0 to 1, for jitter and the number of this clone. Default: the machine's. */
  readonly random?: () => number;
  /** @internal */
  readonly credential?: TokenSource;
  /** How samples are retried. Default: for as long as any sample of the client finishes. */
  readonly retry?: SamplingRetryOptions;
  /** What to print on stderr. Default `TINKER_LOG`, else `warning`. */
  readonly logLevel?: LogLevel;
}

const REPLY_OPTIONS = optionNames<ReplyOptions>({ system: true, samplingParams: true, renderer: true });
const LOGPROBS_OPTIONS = optionNames<ComputeLogprobsOptions>({ lastN: true });

/**
 * Samples from one set of weights.
 *
 * Samples go out as fast as the shared budgets allow and finish in any order. After a temporary failure, or when the
 * service lost the promise, a sample is sent again as a new request, for as long as any sample of this client finishes.
 */
export class SamplingClient {
  /** The service's id of this sampling session. */
  readonly samplingSessionId: string;
  readonly #session: OpenSession;
  readonly #lifecycle: Lifecycle;
  readonly #options: SamplingClientOptions;
  readonly #samples: Samples;
  /** One object for all samples, since there are many. */
  readonly #kind: WorkKind;
  readonly #leave: Observable<void>;
  /** Loaded with the first reply, and kept. */
  readonly #renderer = once(defer(() => this.#rendererOf()));

  /** Made by a ServiceClient or a TrainingClient; `clone` is 0 except for clients made from a handle. */
  constructor(
    session: OpenSession,
    lifecycle: Lifecycle,
    samplingSessionId: string,
    options: SamplingClientOptions = {},
    clone: number | 'join' = 0,
    leave: () => Observable<void> = () => of(undefined),
  ) {
    this.#session = session;
    this.#lifecycle = lifecycle;
    this.#options = options;
    this.samplingSessionId = samplingSessionId;
    this.#kind = { requestType: 'Sample', target: samplingSessionId };
    this.#samples = new Samples(session, samplingSessionId, options, clone);
    this.#leave = once(defer(leave));
  }

  /**
   * A client for the sampler behind a handle, with this process's own credentials. Every client made from a handle is a
   * clone with separate numbers, so that any number of processes may share a sampler.
   */
  static fromSamplerHandle(handle: string, options: FromHandleOptions = {}): SamplingClient {
    const { session, lifecycle, samplingSessionId, recordStabilityInfo, clone, leave } = openSharedSession(
      handle,
      options,
    );
    return new SamplingClient(
      session,
      lifecycle,
      samplingSessionId,
      withoutUndefined({ retry: options.retry, recordStabilityInfo }),
      clone,
      leave,
    );
  }

  /**
   * Everything that happens on this client's connection, as it happens: its service's events, or those of all clients that
   * this process made from handles of the same session.
   */
  get events$(): Observable<TinkerEvent> {
    return this.#session.connection.events.events$;
  }

  /** This sampler as a string for another process or worker. It carries no credentials. */
  getSamplerHandle(): string {
    return toSamplerHandle(this.#session, this.samplingSessionId, this.#options.recordStabilityInfo ?? false);
  }

  /**
   * Ends a client made from a handle: the last one of a process waits for all pending calls and closes the connections. A
   * client that a service made needs no closing; the service does it.
   */
  close(): TinkerFuture<void> {
    return new TinkerFuture(() => this.#leave);
  }

  /** Samples `numSamples` continuations of the prompt. */
  sample(options: SampleOptions): TinkerFuture<SampleResponse> {
    return this.#lifecycle.start(
      (onAccepted) => this.#samples.sample(options, onAccepted),
      this.#kind,
      options,
      'checked',
    );
  }

  /**
   * What a chat model says to a text or a conversation: renders the prompt, samples, and reads the reply.
   *
   * ```ts
   * const { text } = await sampler.reply('What is the capital of France?');
   * ```
   */
  reply(asked: Asked, options: ReplyOptions = {}): TinkerFuture<SampledReply> {
    const replying = () => replyOnce(this, this.#renderer, asked, options);
    return this.#lifecycle.start(replying, undefined, options, REPLY_OPTIONS);
  }

  /**
   * The same as a stream, with the whole reply last (`end`). Cold: nothing is sent before subscribing, and unsubscribing cancels the sample.
   * A sampler delivers a sample when it is complete. With `pieceTokens` it is asked for in pieces, each a separate request, so that text
   * arrives while the rest is sampled; every piece sends the prompt again.
   *
   * ```ts
   * sampler.reply$('Tell me a story.', { pieceTokens: 16 }).subscribe((delta) => {
   *   if (delta.type === 'text') process.stdout.write(delta.text);
   * });
   * ```
   */
  reply$(asked: Asked, options: ReplyStreamOptions = {}): Observable<ResponseDelta> {
    return defer(() => replyDeltas(this, this.#renderer, asked, options));
  }

  /** The log probability of every prompt token; NaN if there is none, as for the first. */
  computeLogprobs(prompt: ModelInput, options: ComputeLogprobsOptions = {}): TinkerFuture<Float32Array> {
    const { lastN } = options ?? {};
    const asked: SampleOptions = {
      prompt,
      samplingParams: { maxTokens: 1 },
      includePromptLogprobs: true,
      ...(lastN === undefined ? {} : { promptLogprobsLastN: lastN }),
    };
    return this.#lifecycle.start(
      (onAccepted) =>
        this.#samples.sample(asked, onAccepted).pipe(
          map(({ promptLogprobs }) => {
            if (promptLogprobs === undefined)
              throw new APIResponseValidationError('the service returned no prompt logprobs');
            return promptLogprobs;
          }),
        ),
      this.#kind,
      options,
      LOGPROBS_OPTIONS,
    );
  }

  /** The name of the model this sampler is based on. */
  getBaseModel(options: CallOptions = {}): TinkerFuture<string> {
    const baseModel = (): Observable<string> => this.#info().pipe(map((info) => info.baseModel));
    return this.#lifecycle.start(baseModel, undefined, options);
  }

  /** The tokenizer of the model this sampler is based on. */
  getTokenizer(options: CallOptions = {}): TinkerFuture<Tokenizer> {
    const tokenizer = (): Observable<Tokenizer> =>
      this.#info().pipe(concatMap(({ baseModel, tokenizerId }) => tokenizerOf(baseModel, tokenizerId)));
    return this.#lifecycle.start(tokenizer, undefined, options);
  }

  /** The renderer recommended for this model, or another one by name, over its tokenizer. */
  getRenderer(name?: RendererName, options: CallOptions = {}): TinkerFuture<Renderer> {
    return this.#lifecycle.start(() => this.#rendererOf(name), undefined, options);
  }

  #rendererOf(name?: RendererName): Observable<Renderer> {
    return this.#info().pipe(concatMap(({ baseModel, tokenizerId }) => rendererOf(baseModel, tokenizerId, name)));
  }

  #info(): Observable<GetSamplerResponse> {
    const path = `samplers/${segments(this.samplingSessionId, 'samplingSessionId')}`;
    return this.#session.connection.call({ method: 'GET', path, lane: 'rest' }, GetSamplerResponse);
  }
}
