import { CreateSamplingSessionRequest, JoinSamplingSessionRequest, type SampleResponse } from '../../wire/index.js';
import { MAX_SAMPLES } from '../engine/sampling/sampleRequest.js';
import type { SampleRequest as EngineRequest, SampleResult } from '../engine/types.js';
import { withoutUndefined } from '../../wire/record.js';
import { HttpError } from '../http/httpError.js';
import { json, type Reply } from '../http/reply.js';
import type { RequestContext } from '../http/requestContext.js';
import { get, post, type Route } from '../http/router.js';
import { toFailure } from '../queue/failure.js';
import type { LocalFuture } from '../queue/localFuture.js';
import type { LocalService } from '../service/localService.js';
import { SamplingSession } from '../service/samplingSessions.js';
import { digestOf, promiseOf } from './promise.js';
import { decodeSample, type Sample } from './sampleBody.js';
import { addSampler, findSampler } from './samplers.js';
import { samplerSource } from './samplerSource.js';
import { toTensorData } from './training.js';

/** Samplers and samples. */
export const samplingRoutes = (service: LocalService): Route[] => [
  post('create_sampling_session', (context) => createSamplingSession(service, context)),
  post('join_sampling_session', (context) => {
    const { samplingSessionId } = context.decode(JoinSamplingSessionRequest);
    return json({ client_counter: findSampler(service, samplingSessionId).join() });
  }),
  post('asample', (context) => sample(service, context)),
  get('samplers/:id', async (context) => {
    const { id, source } = findSampler(service, context.param('id'));
    const { baseModel, modelPath } = source;
    return json({
      sampler_id: id,
      base_model: baseModel,
      ...(modelPath === undefined ? {} : { model_path: modelPath }),
      ...(service.isOpened(baseModel) ? { tokenizer_id: await service.tokenizerFolder(baseModel) } : {}),
    });
  }),
];

async function createSamplingSession(service: LocalService, context: RequestContext): Promise<Reply> {
  const { sessionId, samplingSessionSeqId, baseModel, modelPath } = context.decode(CreateSamplingSessionRequest);
  service.sessions.use(sessionId);
  const id = service.dialect.samplerId(sessionId, samplingSessionSeqId);
  const digest = digestOf(context);
  const known = service.samplingSessions.get(id) ?? service.samplerRecords.get(id);
  if (known !== undefined && known.digest !== digest) {
    throw new HttpError(409, `sampling_session_seq_id ${samplingSessionSeqId} was already used`);
  }
  if (known === undefined) {
    const source = samplerSource(service, { baseModel, modelPath });
    await addSampler(service, new SamplingSession(id, sessionId, source, digest), { baseModel, modelPath });
  }
  return json({ type: 'create_sampling_session', sampling_session_id: id });
}

function sample(service: LocalService, context: RequestContext): Reply {
  const { request, seqId } = decodeSample(context);
  const session = sessionOf(service, request);
  const digest = digestOf(context);
  const { numSamples } = request;
  // Before anything is made for each of them.
  if (!(numSamples <= MAX_SAMPLES)) throw new HttpError(400, `num_samples must be at most ${MAX_SAMPLES}`);
  if (service.options.refuseOverflow) checkFits(service, session, request);
  const known = seqId === undefined ? undefined : session.recent.find(seqId, digest);
  if (known !== undefined) return promiseOf(service, known);
  const { sampling } = service.controls;
  // A client that sends the header promises to hold back and try again; older ones are kept waiting in the queue.
  if (sampling.full && context.header('x-tinker-sampling-backpressure') !== undefined) {
    throw new HttpError(429, 'too many samples in flight');
  }
  const future = service.futures.create(
    {
      requestType: 'Sample',
      sessionId: session.sessionId,
      sampleSequenceIds: Array.from({ length: numSamples }, () => service.nextSequenceId()),
    },
    (settled) => announce(service, session, seqId, settled),
  );
  if (seqId !== undefined) session.recent.add(seqId, digest, future);
  void runSample(service, session, request, future, context.body.length);
  return promiseOf(service, future);
}

function sessionOf(service: LocalService, request: Sample): SamplingSession {
  const { samplingSessionId, baseModel, modelPath } = request;
  if (samplingSessionId === undefined) {
    return new SamplingSession('', undefined, samplerSource(service, { baseModel, modelPath }), '');
  }
  const session = findSampler(service, samplingSessionId);
  if (session.sessionId !== undefined) service.sessions.use(session.sessionId);
  return session;
}

/** @throws HttpError 400 for a sample that could not reach its `max_tokens`. */
function checkFits(service: LocalService, { source }: SamplingSession, { prompt, samplingParams }: Sample): void {
  const model = service.engine.baseModels.find(({ name }) => name === source.baseModel);
  const { maxTokens = 1 } = samplingParams;
  if (model === undefined || prompt.length + maxTokens <= model.contextLength) return;
  const asked = `a prompt of ${prompt.length} tokens and max_tokens ${maxTokens}`;
  throw new HttpError(400, `${asked} do not fit the context of ${model.contextLength}`);
}

/** Puts the finished sample into the log that the session poller reads. */
function announce(
  service: LocalService,
  session: SamplingSession,
  seqId: bigint | undefined,
  future: LocalFuture,
): void {
  const { state, requestId } = future;
  const log = session.logOfSeqId(seqId);
  if (state.type === 'finished') {
    const sizeBytes = service.dialect.encode(future, state.result, true).content.length;
    log.add({ state: 'finished', requestId, sizeBytes });
  } else log.add({ state: 'failed', requestId });
}

async function runSample(
  service: LocalService,
  session: SamplingSession,
  request: Sample,
  future: LocalFuture,
  bodyBytes: number,
): Promise<void> {
  const cancel = new AbortController();
  service.cancels.set(future.requestId, cancel);
  // A sample that waits for room must not wait for its cancellation to be noticed there.
  cancel.signal.addEventListener('abort', () => future.reject({ error: 'the sample was cancelled', category: 'user' }));
  const letGo = service.ephemeral.use(session.id);
  let release: (() => void) | undefined;
  let startedAt = service.now();
  try {
    future.throttled = service.controls.sampling.full;
    await service.controls.sampling.room();
    future.throttled = false;
    release = service.controls.sampling.take(bodyBytes);
    await service.controls.whenActive();
    startedAt = service.now();
    const scaledLogprobs = service.options.sampledLogprobs === 'scaled';
    const asked = { ...toEngineRequest(request), scaledLogprobs };
    const result = await service.samplers.sample(session.source, asked, cancel.signal);
    countTokens(service, session, request, result);
    future.resolve({ type: 'sample', value: toResponse(result) });
  } catch (error) {
    future.reject(toFailure(error));
  } finally {
    release?.();
    letGo();
    service.cancels.delete(future.requestId);
    const { requestId, createdAt, state } = future;
    if (session.sessionId !== undefined) {
      service.traces.add(session.sessionId, {
        name: 'Sample',
        track: session.id,
        requestId,
        queuedAt: createdAt,
        startedAt,
        endedAt: service.now(),
        ok: state.type === 'finished',
      });
    }
  }
}

function countTokens(service: LocalService, session: SamplingSession, request: Sample, result: SampleResult): void {
  const attribution = { baseModel: session.source.baseModel, sessionId: session.sessionId };
  const { promptCacheHitTokens: cached } = result;
  const sampled = result.sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
  service.usage.record({ type: 'sampling_prefill', cached: false }, request.prompt.length - cached, attribution);
  service.usage.record({ type: 'sampling_prefill', cached: true }, cached, attribution);
  service.usage.record({ type: 'sampling_sample' }, sampled, attribution);
}

function toEngineRequest(request: Sample): EngineRequest {
  const { samplingParams: params } = request;
  return {
    prompt: request.prompt.toInts(),
    numSamples: request.numSamples,
    maxTokens: params.maxTokens,
    seed: params.seed,
    stop: params.stop,
    temperature: params.temperature,
    topK: params.topK,
    topP: params.topP,
    promptLogprobs: request.promptLogprobs,
    promptLogprobsLastN: request.promptLogprobsLastN,
    topkPromptLogprobs: request.topkPromptLogprobs,
    topkSampleLogprobs: request.topkSampleLogprobs,
    targetPromptLogprobs: request.targetPromptLogprobs,
    promptAltTokensK: request.promptAltTokensK,
  };
}

function toResponse(result: SampleResult): SampleResponse {
  const { targetPromptLogprobs: targets, promptAltTokens: others, ...rest } = result;
  return withoutUndefined({
    ...rest,
    targetPromptLogprobs: targets && toTensorData(targets),
    promptAltTokens: others && { tokens: toTensorData(others.tokens), logprobs: toTensorData(others.logprobs) },
  });
}
