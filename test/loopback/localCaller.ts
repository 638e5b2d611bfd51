import type { LocalTinker } from '../../src/local/index.js';
import {
  decodeForwardBackwardOutput,
  decodeSampleResponse,
  encodeForwardBackwardRequest,
  type ForwardBackwardOutput,
  type PreparedDatum,
  type SampleResponse,
} from '../../src/wire/index.js';

export type Json = Record<string, unknown>;

/** A bare client of the protocol, so that tests see what the server sends and not what a library makes of it. */
export class LocalCaller {
  constructor(
    readonly url: string,
    readonly apiKey: string,
  ) {}

  fetch(path: string, { headers, ...init }: RequestInit = {}): Promise<Response> {
    return fetch(`${this.url}/api/v1/${path}`, {
      ...init,
      headers: { 'x-api-key': this.apiKey, ...(headers as Record<string, string>) },
    });
  }

  send(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return this.fetch(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...headers },
    });
  }

  async post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Json> {
    return answer(await this.send(path, body, headers));
  }

  async get(path: string): Promise<Json> {
    return answer(await this.fetch(path));
  }

  /** Submits work and waits for its JSON result. */
  async future(path: string, body: unknown): Promise<Json> {
    const { request_id: requestId } = await this.post(path, body);
    return this.result(requestId as string);
  }

  /** Polls until the future settles. */
  async result(requestId: string): Promise<Json> {
    for (;;) {
      const found = await answer(await this.poll(requestId));
      // Said with 200 where `tryAgainAs` is `body`: on a busy machine also of work that is quick.
      if (found['type'] !== 'try_again') return found;
    }
  }

  async poll(requestId: string, headers: Record<string, string> = {}, allowMetadataOnly = false): Promise<Response> {
    for (;;) {
      const body = { request_id: requestId, allow_metadata_only: allowMetadataOnly };
      const response = await this.send('retrieve_future', body, headers);
      if (response.status !== 408) return response;
      await response.arrayBuffer();
    }
  }

  async createSession(fields: Json = {}): Promise<string> {
    const { session_id: id } = await this.post('create_session', { tags: [], sdk_version: 'test', ...fields });
    return id as string;
  }

  async createModel(sessionId: string, lora: Json = { rank: 4 }, modelSeqId = 0): Promise<string> {
    const { supported_models: models } = await this.get('get_server_capabilities');
    const { model_id: id } = await this.future('create_model', {
      session_id: sessionId,
      model_seq_id: modelSeqId,
      base_model: (models as Json[])[0]!['model_name'],
      lora_config: lora,
    });
    return id as string;
  }

  submitPass(
    modelId: string,
    seqId: number,
    data: readonly PreparedDatum[],
    options: PassOptions = {},
  ): Promise<Response> {
    const { lossFn = 'cross_entropy', forwardOnly = false, lossFnConfig = {} } = options;
    const bytes = encodeForwardBackwardRequest({ modelId, seqId, data, lossFn, forwardOnly, lossFnConfig });
    return this.fetch('forward_backward', {
      method: 'POST',
      body: Buffer.from(bytes),
      headers: { 'content-type': 'application/x-protobuf' },
    });
  }

  async forwardBackward(
    modelId: string,
    seqId: number,
    data: readonly PreparedDatum[],
    options: PassOptions = {},
  ): Promise<ForwardBackwardOutput> {
    const { request_id: requestId } = await answer(await this.submitPass(modelId, seqId, data, options));
    const response = await this.poll(requestId as string, { accept: 'application/x-protobuf' });
    if (response.headers.get('content-type') !== 'application/x-protobuf') throw new Error(await response.text());
    return decodeForwardBackwardOutput(new Uint8Array(await response.arrayBuffer()));
  }

  async sample(body: Json): Promise<SampleResponse> {
    const { request_id: requestId } = await this.post('asample', body);
    const response = await this.poll(requestId as string, { accept: 'application/x-protobuf' });
    if (response.headers.get('content-type') !== 'application/x-protobuf') throw new Error(await response.text());
    return decodeSampleResponse(new Uint8Array(await response.arrayBuffer()));
  }
}

export interface PassOptions {
  readonly lossFn?: string;
  readonly forwardOnly?: boolean;
  readonly lossFnConfig?: Record<string, number | string>;
}

export const connect = ({ url, apiKey }: Pick<LocalTinker, 'url' | 'apiKey'>): LocalCaller =>
  new LocalCaller(url, apiKey);

async function answer(response: Response): Promise<Json> {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text}`);
  return (text === '' ? {} : JSON.parse(text)) as Json;
}
