import { isLeft } from 'fp-ts/lib/Either.js';
import { encodeForwardBackwardOutput } from '../wire/proto/forwardBackwardOutput.js';
import { encodeSampleResponse } from '../wire/proto/sampleResponse.js';
import type { ModelInput } from '../wire/modelInput.js';
import { SampleRequest, SampleResponseJson, type SampleResponse } from '../wire/sampling.js';
import { ClientConfig, DynamicConfig } from '../wire/session.js';
import { TensorData } from '../wire/tensor.js';
import {
  ForwardBackwardOutputJson,
  type ForwardBackwardOutput,
  type ForwardBackwardRequest,
} from '../wire/training.js';
import { json, protobuf, refusal, text, type Answer } from './answers.js';
import type { FakePromises } from './FakePromises.js';
import type { FakeRequest } from './FakeRequest.js';

/** How the fake service does its work. */
export interface FakeWork {
  /** The service's flags, where they differ from their defaults. */
  readonly config?: Partial<ClientConfig>;
  /** Flags that the service may change while a client runs. Default: its defaults. */
  readonly dynamicConfig?: Partial<DynamicConfig>;
  /** What it takes and gives. Default `protobuf`, which takes JSON too; `json` refuses protobuf as SkyRL does. */
  readonly speaks?: 'protobuf' | 'json';
  /** The result of a pass. Default: every target token has logprob −1. */
  readonly forwardBackward?: (pass: ForwardBackwardRequest) => ForwardBackwardOutput;
  /** The metrics of an optimizer step, by the request's JSON. Default none. */
  readonly optimStep?: (request: Readonly<Record<string, unknown>>) => Readonly<Record<string, number>>;
  /**
   * The result of a sample: a response, or just the tokens of each sequence, which then end with `stop` and have logprob −1.
   * Default: as many sequences as asked for, of tokens 1, 2, 3 … up to `maxTokens`, with logprob −1.
   */
  readonly sample?: (request: FakeSampleRequest) => SampleResponse | readonly ArrayLike<number>[];
}

/** A sample that was asked for. */
export interface FakeSampleRequest {
  /** What is to be continued. */
  readonly prompt: ModelInput;
  /** How many sequences. */
  readonly numSamples: number;
  /** How to sample; `maxTokens` is absent if it was not given. */
  readonly samplingParams: SampleRequest['samplingParams'];
  /** Whether the logprobs of the prompt are wanted. */
  readonly promptLogprobs: boolean;
  /** The request as it was sent, with everything else there is in it. */
  readonly json: Readonly<Record<string, unknown>>;
}

export type Endpoint = (request: FakeRequest, promises: FakePromises, work: FakeWork) => Answer;

/** The answers of a service at which everything goes well. */
export const ENDPOINTS = {
  'client/config': (_, __, { config = {} }) => json(ClientConfig.encode(config as ClientConfig)),
  'client/dynamic_config': (_, __, { dynamicConfig = {} }) =>
    json(DynamicConfig.encode(dynamicConfig as DynamicConfig)),
  create_session: () => json({ session_id: 'session-1' }),
  session_heartbeat: () => json({}),
  get_server_capabilities: () => json({ supported_models: [{ model_name: 'fake/model', max_context_length: 32_768 }] }),
  create_model: (request, promises) => {
    const modelId = `${String(request.json['session_id'])}:train:${String(request.json['model_seq_id'])}`;
    return promises.accept(`${modelId}:create`, request, () => json({ model_id: modelId }));
  },
  get_info: ({ json: { model_id: modelId } }) =>
    json({ model_id: modelId, model_data: { model_name: 'fake/model' }, is_lora: true, lora_rank: 32 }),
  forward_backward: pass,
  forward: pass,
  optim_step: (request, promises, { optimStep = () => ({}) }) =>
    promises.accept(turnId(request), request, () => json({ metrics: optimStep(request.json) })),
  save_weights: (request, promises) => saved(request, promises, 'weights'),
  save_weights_external: (request, promises) => saved(request, promises, 'external_weights'),
  save_weights_for_sampler: (request, promises) => {
    const seqId = request.json['sampling_session_seq_id'];
    if (seqId === undefined) return saved(request, promises, 'sampler_weights');
    return promises.accept(turnId(request), request, () =>
      json({ sampling_session_id: `session-1:sample:${Number(seqId)}` }),
    );
  },
  load_weights: (request, promises) => {
    const { model_id: modelId = 'new', path } = request.json;
    return promises.accept(`${String(modelId)}:${request.seqId ?? 'load'}`, request, () => json({ path }));
  },
  weights_info: () => json({ base_model: 'fake/model', is_lora: true, lora_rank: 32 }),
  create_custom_loss: (request, promises) => {
    const id = `loss-${String(request.json['custom_loss_seq_id'])}`;
    return promises.accept(id, request, () => json({ loss_id: id }));
  },
  create_sampling_session: ({ json: { session_id: sessionId, sampling_session_seq_id: seqId } }) =>
    json({ sampling_session_id: `${String(sessionId)}:sample:${String(seqId)}` }),
  join_sampling_session: () => json({ client_counter: 1 }),
  asample: (request, promises, work) => {
    const requestId = `${String(request.json['sampling_session_id'])}:${request.seqText}`;
    const count = Number(request.json['num_samples'] ?? 1);
    const result = (poll: FakeRequest): ReturnType<typeof json> => {
      const response = toResponse((work.sample ?? defaultSample)(sampleRequest(request.json)));
      return wantsProtobuf(poll, work)
        ? protobuf(encodeSampleResponse(response))
        : json(SampleResponseJson.encode(response as never));
    };
    const ids = Array.from({ length: count }, (_, index) => `${requestId}:${index}`);
    return promises.accept(requestId, request, result, { sample_sequence_ids: ids });
  },
  retrieve_future: (request, promises) => promises.poll(request),
  retrieve_futures: (request, promises) => promises.pollSession(request),
  cancel_future: () => ({ status: 204, headers: {}, body: new Uint8Array() }),
  telemetry: () => json({ status: 'accepted' }),
} satisfies Readonly<Record<string, Endpoint>>;

/** Anything else: sessions end well, samplers have a base model, and everything else does not exist. */
export function otherEndpoint({ path }: FakeRequest): Answer {
  if (/^sessions\/[^/]+\/finish$/.test(path)) return json({});
  const sampler = /^samplers\/(.+)$/.exec(path)?.[1];
  return sampler === undefined ? refusal(404, 'Not Found') : json({ sampler_id: sampler, base_model: 'fake/model' });
}

const turnId = ({ json: { model_id: modelId }, seqId }: FakeRequest): string => `${String(modelId)}:${seqId}`;

const saved = (request: FakeRequest, promises: FakePromises, folder: string): Answer => {
  const { model_id: modelId, path } = request.json;
  return promises.accept(turnId(request), request, () =>
    json({ path: `tinker://${String(modelId)}/${folder}/${String(path)}` }),
  );
};

const wantsProtobuf = (poll: FakeRequest, { speaks = 'protobuf' }: FakeWork): boolean =>
  speaks === 'protobuf' && poll.headers['accept'] === 'application/x-protobuf';

function pass(request: FakeRequest, promises: FakePromises, work: FakeWork): Answer {
  if (work.speaks === 'json' && request.body instanceof Uint8Array) return text(500, 'Internal Server Error');
  const asked = request.pass;
  if (asked === undefined) return refusal(422, 'no pass in the body');
  return promises.accept(`${asked.modelId}:${asked.seqId}`, request, (poll) => {
    const output = (work.forwardBackward ?? defaultOutput)(asked);
    return wantsProtobuf(poll, work)
      ? protobuf(encodeForwardBackwardOutput(output))
      : json(ForwardBackwardOutputJson.encode(output as never));
  });
}

function defaultOutput({ data }: ForwardBackwardRequest): ForwardBackwardOutput {
  const lossFnOutputs = data.map(({ lossFnInputs, modelInput }) => {
    const shape = lossFnInputs['target_tokens']?.shape ?? [modelInput.length];
    const size = shape.reduce((product, extent) => product * extent, 1);
    return { logprobs: new TensorData({ dtype: 'float32', data: new Float32Array(size).fill(-1), shape }) };
  });
  const loss = lossFnOutputs.reduce((sum, { logprobs }) => sum + logprobs.data.length, 0);
  return { lossFnOutputType: 'TensorLogprobs', lossFnOutputs, metrics: { 'loss:sum': loss } };
}

/** The request in words of the client; what it lacks has the protocol's defaults. */
function sampleRequest(json: Readonly<Record<string, unknown>>): FakeSampleRequest {
  // A clone's number may be too large to be exact, and is not asked for here.
  const decoded = SampleRequest.decode({ ...json, seq_id: undefined });
  if (isLeft(decoded)) throw new Error('the fake service was sent a sample that it cannot read');
  const { prompt, numSamples, samplingParams, promptLogprobs = false } = decoded.right;
  return { prompt, numSamples, samplingParams, promptLogprobs, json };
}

function toResponse(sampled: SampleResponse | readonly ArrayLike<number>[]): SampleResponse {
  if ('sequences' in sampled) return sampled;
  const sequences = sampled.map((tokens) => ({
    stopReason: 'stop' as const,
    tokens: Int32Array.from(tokens),
    logprobs: new Float32Array(tokens.length).fill(-1),
  }));
  return { sequences, promptCacheHitTokens: 0 };
}

function defaultSample({ numSamples, samplingParams, prompt, promptLogprobs }: FakeSampleRequest): SampleResponse {
  const length = samplingParams.maxTokens ?? 1;
  return {
    sequences: Array.from({ length: numSamples }, () => ({
      stopReason: 'length' as const,
      tokens: Int32Array.from({ length }, (_, index) => index + 1),
      logprobs: new Float32Array(length).fill(-1),
    })),
    ...(promptLogprobs
      ? { promptLogprobs: Float32Array.from({ length: prompt.length }, (_, at) => (at === 0 ? NaN : -1)) }
      : {}),
    promptCacheHitTokens: 0,
  };
}
