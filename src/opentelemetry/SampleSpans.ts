import { SpanKind, type Attributes } from '@opentelemetry/api';
import type { TinkerEvent } from '../client/events.js';
import type { RlEvent } from '../rl/pacing/rlEvent.js';
import { countTokens } from '../wire/countTokens.js';
import type { ModelInput } from '../wire/modelInput.js';
import { ATTRIBUTE, SPAN } from './names.js';
import type { Branch, SpanTree } from './SpanTree.js';
import type { Wait } from './waits.js';

/** Turns tokens to text, for those who want prompts and completions in their spans. */
export interface Content {
  decode(tokens: ArrayLike<number>): string;
}

interface SampleRequest {
  readonly sentMs: number;
  readonly attributes: Attributes;
  readonly waits: { readonly wait: Wait; readonly atMs: number }[];
  endedMs?: number;
  error?: unknown;
}

type OfRollout = RlEvent & { readonly type: 'sample-started' | 'sample-finished' | 'sample-failed' };

/** Requests that have ended and that no rollout has claimed: older ones are dropped. */
const MAX_UNCLAIMED = 4096;

/**
 * Spans of samples. Joins rollout and client events by request id.
 */
export class SampleSpans {
  readonly #requests = new Map<string, SampleRequest>();
  #ofRollouts = 0;

  /** What the conventions ask of every call of a model, from its start on. */
  readonly #call: Attributes;

  constructor(
    private readonly tree: SpanTree,
    private readonly run: Branch,
    private readonly content: Content | undefined,
    model: string | undefined,
  ) {
    this.#call = {
      // The service gets a prompt and continues it. Chats are made into prompts by the client.
      [ATTRIBUTE.operation]: 'text_completion',
      [ATTRIBUTE.provider]: 'tinker',
      ...(model === undefined ? {} : { [ATTRIBUTE.requestModel]: model }),
    };
  }

  sent({ requestId, target }: TinkerEvent & { readonly type: 'request-sent' }, atMs: number): void {
    const attributes = { [ATTRIBUTE.requestId]: requestId, [ATTRIBUTE.target]: target };
    this.#requests.set(requestId, { sentMs: atMs, attributes, waits: [] });
  }

  /** Whether the wait was one of a sample. */
  wait(requestId: string, wait: Wait, atMs: number): boolean {
    const request = this.#requests.get(requestId);
    request?.waits.push({ wait, atMs });
    return request !== undefined;
  }

  finished(requestId: string, atMs: number, error: unknown): void {
    const request = this.#requests.get(requestId);
    if (request === undefined) return;
    request.endedMs = atMs;
    request.error = error;
    if (this.#ofRollouts === 0) this.#alone(requestId, request);
    else if (this.#requests.size > MAX_UNCLAIMED) {
      const [oldest, first] = [...this.#requests].find(([, { endedMs }]) => endedMs !== undefined)!;
      this.#alone(oldest, first);
    }
  }

  ofRollout(event: OfRollout, atMs: number): void {
    const { order, index, sample } = event;
    const key = `sample ${order} ${index} ${sample}`;
    if (event.type === 'sample-started') {
      this.#ofRollouts++;
      const attributes = {
        ...this.#call,
        [ATTRIBUTE.sample]: sample,
        [ATTRIBUTE.inputTokens]: countTokens(event.prompt),
      };
      const rollout = this.tree.get(`rollout ${order} ${index ?? 0}`) ?? this.run;
      this.tree.start(key, SPAN.sample, rollout, atMs, attributes, SpanKind.CLIENT);
      return;
    }
    this.#ofRollouts--;
    const branch = this.tree.get(key);
    const request = event.requestId === undefined ? undefined : this.#requests.get(event.requestId);
    if (event.requestId !== undefined) this.#requests.delete(event.requestId);
    if (branch !== undefined && request !== undefined) {
      branch.span.setAttributes(request.attributes);
      this.#tellWaits(branch, request);
    }
    if (event.type === 'sample-failed') {
      const withMessage = this.content !== undefined;
      return event.error === undefined
        ? this.tree.end(key, atMs, { [ATTRIBUTE.errorType]: 'cancelled' })
        : this.tree.fail(key, atMs, event.error, withMessage);
    }
    const { turns } = event;
    const outputTokens = turns.reduce((sum, { sequence }) => sum + sequence.tokens.length, 0);
    this.tree.end(key, atMs, {
      [ATTRIBUTE.outputTokens]: outputTokens,
      [ATTRIBUTE.finishReasons]: turns.map(({ sequence }) => sequence.stopReason),
      ...(turns[0]?.step === undefined ? {} : { [ATTRIBUTE.policyStep]: turns[0].step }),
      ...this.#contentOf(turns),
    });
  }

  /** Makes spans of what nobody has claimed. */
  flush(atMs: number): void {
    for (const [requestId, request] of this.#requests) {
      request.endedMs ??= atMs;
      this.#alone(requestId, request);
    }
  }

  #alone(requestId: string, { sentMs, attributes, waits, endedMs, error }: SampleRequest): void {
    this.#requests.delete(requestId);
    const key = `request ${requestId}`;
    const told = { ...this.#call, ...attributes };
    this.#tellWaits(this.tree.start(key, SPAN.sample, this.run, sentMs, told, SpanKind.CLIENT), { waits });
    if (error === undefined) this.tree.end(key, endedMs!);
    else this.tree.fail(key, endedMs!, error, this.content !== undefined);
  }

  #tellWaits(branch: Branch, { waits }: Pick<SampleRequest, 'waits'>): void {
    for (const { wait, atMs } of waits) this.tree.event(branch, wait.name, wait.attributes, atMs);
  }

  #contentOf(turns: (OfRollout & { readonly type: 'sample-finished' })['turns']): Attributes {
    const content = this.content;
    const first = turns[0];
    if (content === undefined || first === undefined) return {};
    const input = [{ role: 'user', parts: textParts(content.decode(textTokens(first.prompt))) }];
    const output = turns.map(({ sequence: { tokens, stopReason } }) => ({
      role: 'assistant',
      parts: textParts(content.decode(tokens)),
      finish_reason: stopReason,
    }));
    // As JSON: OpenTelemetry's attributes for JavaScript hold no objects.
    return { [ATTRIBUTE.inputMessages]: JSON.stringify(input), [ATTRIBUTE.outputMessages]: JSON.stringify(output) };
  }
}

const textParts = (content: string) => [{ type: 'text', content }];

/** The tokens of a prompt's text; images and audio are left out. */
const textTokens = ({ chunks }: ModelInput): readonly number[] =>
  chunks.flatMap((chunk) => (chunk.type === 'encoded_text' ? [...chunk.tokens] : []));
