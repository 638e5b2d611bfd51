import { isLeft } from 'fp-ts/lib/Either.js';
import type { Lane, TransportRequest } from '../transport/Transport.js';
import { decodeForwardBackwardRequest } from '../wire/proto/forwardBackwardRequest.js';
import { ForwardBackwardRequestJson, ForwardRequestJson, type ForwardBackwardRequest } from '../wire/training.js';

/** A request that reached the fake service, and what became of it. */
export class FakeRequest {
  /** The HTTP method. */
  readonly method: TransportRequest['method'];
  /** Below `/api/v1/`, without the query. */
  readonly path: string;
  /** The query of the URL. */
  readonly query: URLSearchParams;
  /** Which connection pool it went through. */
  readonly lane: Lane;
  /** The headers, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body as it was sent, or undefined. */
  readonly body: string | Uint8Array | undefined;
  /** `open` until it is answered, gets no answer, or the client gives up on it. */
  state: 'open' | 'answered' | 'failed' | 'aborted' = 'open';
  /** When it stopped being open. */
  endedMs: number | undefined;
  #json: Readonly<Record<string, unknown>> | undefined;
  #pass: ForwardBackwardRequest | undefined;

  constructor(
    request: TransportRequest,
    /** When it was sent, by the clock of the test. */
    readonly atMs: number,
  ) {
    const [path = '', query = ''] = request.path.split('?');
    this.method = request.method;
    this.path = decodeURIComponent(path.replace(/^\/api\/v1\//, ''));
    this.query = new URLSearchParams(query);
    this.lane = request.lane;
    this.headers = request.headers;
    this.body = request.body;
  }

  /** The body, if it was JSON; empty if it was not. */
  get json(): Readonly<Record<string, unknown>> {
    return (this.#json ??= typeof this.body === 'string' ? (JSON.parse(this.body) as Record<string, unknown>) : {});
  }

  /** The forward or forward-backward pass in the body, whether it came as protobuf or as JSON. */
  get pass(): ForwardBackwardRequest | undefined {
    return (this.#pass ??= this.#decodePass());
  }

  /** The model that the work is for. */
  get modelId(): string | undefined {
    return this.pass?.modelId ?? (this.json['model_id'] as string | undefined);
  }

  /** The number of the turn, or of the sample. */
  get seqId(): number | undefined {
    return this.pass?.seqId ?? (this.json['seq_id'] as number | undefined);
  }

  /** The same number as it was written: a clone's may be too large to be exact as a number. */
  get seqText(): string {
    const written = typeof this.body === 'string' ? /"seq_id":(\d+)/.exec(this.body)?.[1] : undefined;
    return written ?? String(this.seqId);
  }

  /** What a poll asks for. */
  get requestId(): string | undefined {
    return this.json['request_id'] as string | undefined;
  }

  #decodePass(): ForwardBackwardRequest | undefined {
    if (this.path !== 'forward_backward' && this.path !== 'forward') return undefined;
    if (this.body instanceof Uint8Array) return decodeForwardBackwardRequest(this.body);
    if (this.path === 'forward') {
      const decoded = ForwardRequestJson.decode(this.json);
      if (isLeft(decoded)) return undefined;
      const { modelId, seqId = 0, forwardInput } = decoded.right;
      return { modelId, seqId, ...forwardInput, forwardOnly: true };
    }
    const decoded = ForwardBackwardRequestJson.decode(this.json);
    if (isLeft(decoded)) return undefined;
    const { modelId, seqId = 0, forwardBackwardInput } = decoded.right;
    return { modelId, seqId, ...forwardBackwardInput, forwardOnly: false };
  }
}
