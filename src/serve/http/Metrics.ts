import type { SampleResponse } from '../../wire/sampling.js';

/** One request that has ended, as the access log has it. */
export interface AccessEntry {
  /** Also in the answer's header `x-request-id`; the caller's own if it sent one. */
  readonly requestId: string;
  /** The HTTP method. */
  readonly method: string;
  /** The path that was asked for, without its query. */
  readonly path: string;
  /** The status of the answer; 499 if the caller hung up before it. */
  readonly status: number;
  /** From the first byte of the request to the end of the answer. */
  readonly durationMs: number;
  /** The name of the key; undefined if there was none. */
  readonly key: string | undefined;
}

const BUCKETS_SECONDS = [0.1, 0.3, 1, 3, 10, 30, 100, 300];

/** Counts what a gateway does, in the text format of Prometheus. */
export class Metrics {
  readonly #requests = new Map<string, number>();
  readonly #buckets = new Array<number>(BUCKETS_SECONDS.length).fill(0);
  #seconds = 0;
  #count = 0;
  #promptTokens = 0;
  #cachedTokens = 0;
  #sampledTokens = 0;

  /** `route` is the path as the gateway knows it: what callers make up must not become labels without end. */
  request(route: string, { status, durationMs, key = '' }: AccessEntry): void {
    const labels = `route="${route}",status="${status}",key="${escaped(key)}"`;
    this.#requests.set(labels, (this.#requests.get(labels) ?? 0) + 1);
    const seconds = durationMs / 1000;
    this.#count++;
    this.#seconds += seconds;
    BUCKETS_SECONDS.forEach((most, index) => {
      if (seconds <= most) this.#buckets[index]!++;
    });
  }

  sampled(promptTokens: number, { sequences, promptCacheHitTokens }: SampleResponse): void {
    this.#promptTokens += promptTokens;
    this.#cachedTokens += promptCacheHitTokens;
    for (const { tokens } of sequences) this.#sampledTokens += tokens.length;
  }

  text(now: { readonly active: number; readonly reachable: boolean }): string {
    const lines = [
      '# HELP tinker_rx_requests_total Requests that have ended.',
      '# TYPE tinker_rx_requests_total counter',
      ...[...this.#requests].map(([labels, count]) => `tinker_rx_requests_total{${labels}} ${count}`),
      '# HELP tinker_rx_request_seconds How long requests took.',
      '# TYPE tinker_rx_request_seconds histogram',
      ...BUCKETS_SECONDS.map((most, index) => `tinker_rx_request_seconds_bucket{le="${most}"} ${this.#buckets[index]}`),
      `tinker_rx_request_seconds_bucket{le="+Inf"} ${this.#count}`,
      `tinker_rx_request_seconds_sum ${this.#seconds}`,
      `tinker_rx_request_seconds_count ${this.#count}`,
      '# HELP tinker_rx_tokens_total Tokens of prompts, those of them that were cached, and sampled tokens.',
      '# TYPE tinker_rx_tokens_total counter',
      `tinker_rx_tokens_total{kind="prompt"} ${this.#promptTokens}`,
      `tinker_rx_tokens_total{kind="cached"} ${this.#cachedTokens}`,
      `tinker_rx_tokens_total{kind="sampled"} ${this.#sampledTokens}`,
      '# HELP tinker_rx_requests_active Requests in flight.',
      '# TYPE tinker_rx_requests_active gauge',
      `tinker_rx_requests_active ${now.active}`,
      '# HELP tinker_rx_service_reachable Whether the service behind the gateway answers.',
      '# TYPE tinker_rx_service_reachable gauge',
      `tinker_rx_service_reachable ${now.reachable ? 1 : 0}`,
    ];
    return `${lines.join('\n')}\n`;
  }
}

const escaped = (text: string): string => text.replaceAll(/["\\\n]/g, '_');
