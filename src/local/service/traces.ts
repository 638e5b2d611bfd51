/** One piece of work of a session, on the clock of this server. */
export interface Span {
  readonly name: string;
  /** The model or sampler it ran on. */
  readonly track: string;
  readonly requestId: string;
  readonly queuedAt: number;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly cycle?: number;
  readonly ok: boolean;
}

const KEPT_PER_SESSION = 20_000;
const KEPT_SESSIONS = 50;

/** The timeline of each session, as far back as memory is given to it. */
export class Traces {
  readonly #spans = new Map<string, Span[]>();

  add(sessionId: string, span: Span): void {
    let spans = this.#spans.get(sessionId);
    if (spans === undefined) {
      this.#spans.set(sessionId, (spans = []));
      const [oldest] = this.#spans.keys();
      if (this.#spans.size > KEPT_SESSIONS && oldest !== undefined) this.#spans.delete(oldest);
    }
    spans.push(span);
    if (spans.length > KEPT_PER_SESSION) spans.shift();
  }

  /** The timeline in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open. Times in microseconds. */
  export(sessionId: string): object {
    const spans = this.#spans.get(sessionId) ?? [];
    const tracks = [...new Set(spans.map(({ track }) => track))];
    const named = (name: string, tid: number, value: string) => ({ name, ph: 'M', pid: 1, tid, args: { name: value } });
    return {
      displayTimeUnit: 'ms',
      traceEvents: [
        named('process_name', 0, `session ${sessionId}`),
        ...tracks.map((track, index) => named('thread_name', index + 1, track)),
        ...spans.map(({ name, track, requestId, queuedAt, startedAt, endedAt, cycle, ok }) => ({
          name,
          cat: 'work',
          ph: 'X',
          pid: 1,
          tid: tracks.indexOf(track) + 1,
          ts: startedAt * 1000,
          dur: (endedAt - startedAt) * 1000,
          args: {
            request_id: requestId,
            queued_ms: startedAt - queuedAt,
            ok,
            ...(cycle === undefined ? {} : { cycle }),
          },
        })),
      ],
    };
  }
}
