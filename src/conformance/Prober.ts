import { firstValueFrom } from 'rxjs';
import type { Call, Connection } from '../client/connection/Connection.js';
import { APIStatusError } from '../client/errors.js';
import {
  decodeForwardBackwardOutput,
  decodeSampleResponse,
  encodeForwardBackwardRequest,
  ForwardBackwardOutputJson,
  ForwardBackwardRequestJson,
  ForwardRequestJson,
  prepareDatum,
  SampleResponseJson,
  type Datum,
  type ForwardBackwardOutput,
  type LossFnConfig,
  type SampleResponse,
} from '../wire/index.js';
import { asText, isRefusal, Refused, valueOf, type Json } from './answers.js';

const PROTOBUF = 'application/x-protobuf';
/** The first pass of a server may compile for minutes. */
const DEADLINE_MS = 300_000;

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly json: Json;
  readonly bytes: Uint8Array;
}

export interface PassOptions {
  readonly forwardOnly?: boolean;
  readonly lossFnConfig?: LossFnConfig;
  readonly as?: 'protobuf' | 'json';
}

/** A model that is being probed: its number of the next turn is the prober's to take. */
export interface ProbedModel {
  readonly id: string;
  seqId: number;
}

/** Speaks the protocol bare: one request, one answer, no retries, so that a probe sees what the server itself does. */
export class Prober {
  #sessionId: string | undefined;
  #models = 0;
  #samplers = 0;
  #sampler: { readonly id: string; seqId: number } | undefined;
  #model: ProbedModel | undefined;
  #spare: ProbedModel | undefined;
  /** How passes go to this server, once a probe has found out. */
  passesAs: 'protobuf' | 'json' = 'protobuf';

  constructor(
    readonly connection: Connection,
    readonly baseModel: string,
    readonly now: () => number,
    /** How long a server may take to refuse what is wrong: a server that never does is told from one that is slow. */
    readonly patienceMs = 20_000,
  ) {}

  /** Any answer, refusals too. */
  async send(path: string, json?: unknown, more: Partial<Call> = {}): Promise<Answer> {
    const call: Call = { path, lane: 'training', ...(json === undefined ? {} : { json }), ...more };
    try {
      const { status, headers, body } = await firstValueFrom(this.connection.attempt(call, this.connection.uuid()));
      return { status, type: headers['content-type'] ?? '', json: asText(body), bytes: body };
    } catch (error) {
      if (!(error instanceof APIStatusError)) throw error;
      const { status, headers, body } = error;
      const detail = typeof body === 'object' && body !== null ? (body as Json) : { detail: body };
      return { status, type: headers['content-type'] ?? '', json: detail, bytes: new Uint8Array() };
    }
  }

  /** The answer of a request that must be accepted. @throws Refused */
  async ask(path: string, json?: unknown, more: Partial<Call> = {}): Promise<Json> {
    const answer = await this.send(path, json, more);
    if (answer.status >= 300) throw new Refused(answer.status, answer.json);
    return answer.json;
  }

  async session(): Promise<string> {
    const fields = { tags: ['tinker-rx doctor'], user_metadata: {}, sdk_version: this.connection.sdkVersion };
    this.#sessionId ??= (await this.ask('create_session', { ...fields, type: 'create_session' }))[
      'session_id'
    ] as string;
    return this.#sessionId;
  }

  /** A new model. */
  async create(fields: Json = {}): Promise<ProbedModel> {
    const created = await this.work('create_model', {
      session_id: await this.session(),
      model_seq_id: this.#models++,
      base_model: this.baseModel,
      lora_config: { rank: 4, seed: 1, train_unembed: true, train_mlp: true, train_attn: true },
      ...fields,
      type: 'create_model',
    });
    return { id: created['model_id'] as string, seqId: 1 };
  }

  /** The model that most probes share. */
  async model(): Promise<ProbedModel> {
    this.#model ??= await this.create();
    return this.#model;
  }

  /** Another one, for what may spoil a model. Servers have room for few: the probes make four in all. */
  async spare(): Promise<ProbedModel> {
    this.#spare ??= await this.create();
    return this.#spare;
  }

  /** Makes room for the next model, if the server supports that. */
  async release({ id }: ProbedModel): Promise<void> {
    await this.work('unload_model', { model_id: id, type: 'unload_model' }).catch(() => undefined);
  }

  /** Submits work and waits for its result as JSON. @throws Refused when it is not accepted or fails. */
  async work(path: string, json: Json): Promise<Json> {
    const { request_id: id } = await this.ask(path, json);
    return (await this.result(id as string)).json;
  }

  /** An operation in a model's turn. */
  turn(model: ProbedModel, path: string, json: Json = {}): Promise<Json> {
    return this.work(path, { model_id: model.id, seq_id: model.seqId++, ...json });
  }

  /** Polls until there is a result. @throws Refused for work that failed. */
  async result(requestId: string, { accept = '', withinMs = DEADLINE_MS } = {}): Promise<Answer> {
    const until = this.now() + withinMs;
    for (;;) {
      const left = until - this.now();
      if (left <= 0) throw new Refused(408, { detail: `no result within ${withinMs / 1000} s` });
      const headers = accept === '' ? {} : { accept };
      const body = { request_id: requestId, allow_metadata_only: false };
      const more = { lane: 'polls', headers, timeoutMs: Math.min(left, 45_000) } as const;
      const answer = await this.send('retrieve_future', body, more).catch(() => undefined);
      if (answer === undefined || answer.status === 408 || answer.json['type'] === 'try_again') continue;
      if (answer.status >= 300 || isRefusal(answer.json)) throw new Refused(answer.status, answer.json);
      return answer;
    }
  }

  /** Submits a pass without waiting for it. */
  submitPass(
    modelId: string,
    seqId: number,
    data: readonly Datum[],
    lossFn: string,
    options: PassOptions = {},
  ): Promise<Answer> {
    const { forwardOnly = false, lossFnConfig, as = this.passesAs } = options;
    const prepared = data.map((datum, index) => prepareDatum(datum, index));
    const config = lossFnConfig === undefined ? {} : { lossFnConfig };
    if (as === 'protobuf') {
      const protobuf = encodeForwardBackwardRequest({ modelId, seqId, data: prepared, lossFn, forwardOnly, ...config });
      return this.send('forward_backward', undefined, { protobuf });
    }
    const input = { data: prepared, lossFn: lossFn as 'custom', ...config };
    return forwardOnly
      ? this.send('forward', ForwardRequestJson.encode({ modelId, seqId, forwardInput: input }))
      : this.send(
          'forward_backward',
          ForwardBackwardRequestJson.encode({ modelId, seqId, forwardBackwardInput: input }),
        );
  }

  /** A pass and its result. */
  async pass(
    data: readonly Datum[],
    lossFn: string,
    options: PassOptions & { readonly model?: ProbedModel } = {},
  ): Promise<ForwardBackwardOutput> {
    const model = options.model ?? (await this.model());
    const submitted = await this.submitPass(model.id, model.seqId, data, lossFn, options);
    if (submitted.status >= 300) throw new Refused(submitted.status, submitted.json);
    model.seqId++;
    const result = await this.result(submitted.json['request_id'] as string, { accept: PROTOBUF });
    return result.type.startsWith(PROTOBUF)
      ? decodeForwardBackwardOutput(result.bytes)
      : valueOf(ForwardBackwardOutputJson.decode(result.json));
  }

  async samplerOf(fields: Json): Promise<string> {
    const json = { session_id: await this.session(), sampling_session_seq_id: this.#samplers++, ...fields };
    return (await this.ask('create_sampling_session', json))['sampling_session_id'] as string;
  }

  /** Submits a sample to the base model's sampler. */
  async submitSample(prompt: readonly number[], params: Json, fields: Json = {}): Promise<Json> {
    this.#sampler ??= { id: await this.samplerOf({ base_model: this.baseModel }), seqId: 0 };
    return this.ask('asample', {
      sampling_session_id: this.#sampler.id,
      seq_id: this.#sampler.seqId++,
      num_samples: 1,
      prompt: { chunks: [{ type: 'encoded_text', tokens: prompt }] },
      sampling_params: params,
      ...fields,
      type: 'sample',
    });
  }

  async sample(prompt: readonly number[], params: Json, fields: Json = {}): Promise<SampleResponse> {
    const { request_id: id } = await this.submitSample(prompt, params, fields);
    const result = await this.result(id as string, { accept: PROTOBUF });
    return result.type.startsWith(PROTOBUF)
      ? decodeSampleResponse(result.bytes)
      : valueOf(SampleResponseJson.decode(result.json));
  }

  get samplerId(): string | undefined {
    return this.#sampler?.id;
  }

  /** Ends the session, where the server knows how. */
  async end(): Promise<void> {
    if (this.#sessionId === undefined) return;
    await this.send(`sessions/${this.#sessionId}/finish`, { reason: { type: 'success' } }).catch(() => undefined);
  }
}
