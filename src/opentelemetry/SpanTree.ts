import {
  context,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type Span,
  type Tracer,
} from '@opentelemetry/api';

/** An open span, and the context that its children are made in. */
export interface Branch {
  readonly span: Span;
  readonly inside: Context;
}

/** Open spans by key, from which children are made. Ends every span once, at the time it is told. */
export class SpanTree {
  readonly #open = new Map<string, Branch>();

  constructor(private readonly tracer: Tracer) {}

  get(key: string): Branch | undefined {
    return this.#open.get(key);
  }

  start(
    key: string,
    name: string,
    parent: Branch | undefined,
    atMs: number,
    attributes: Attributes,
    kind = SpanKind.INTERNAL,
  ): Branch {
    const outside = parent?.inside ?? context.active();
    const span = this.tracer.startSpan(name, { startTime: new Date(atMs), attributes, kind }, outside);
    const branch = { span, inside: trace.setSpan(outside, span) };
    this.#open.set(key, branch);
    return branch;
  }

  /** Something that happened within a span. */
  event({ span }: Branch, name: string, attributes: Attributes, atMs: number): void {
    span.addEvent(name, attributes, new Date(atMs));
  }

  end(key: string, atMs: number, attributes: Attributes = {}): void {
    const branch = this.#open.get(key);
    if (branch === undefined) return;
    this.#open.delete(key);
    branch.span.setAttributes(attributes);
    branch.span.end(new Date(atMs));
  }

  /** Ends a span as failed. The message of an error may hold content, and is told on request only. */
  fail(key: string, atMs: number, error: unknown, withMessage: boolean): void {
    const branch = this.#open.get(key);
    if (branch === undefined) return;
    const { name, message } = error instanceof Error ? error : { name: typeof error, message: String(error) };
    const type = (error as { readonly code?: string } | undefined)?.code ?? name;
    branch.span.setStatus({ code: SpanStatusCode.ERROR, ...(withMessage ? { message } : {}) });
    this.end(key, atMs, { 'error.type': type });
  }

  /** Ends what is still open, the newest first. */
  endAll(atMs: number): void {
    for (const key of [...this.#open.keys()].reverse()) this.end(key, atMs);
  }
}
