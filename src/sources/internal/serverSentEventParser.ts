/** One event, as the server sent it. */
export interface ServerSentEvent {
  /** 'message' unless the server says otherwise. */
  readonly type: string;
  readonly data: string;
  /** The last id the server gave: what a reconnect asks to go on from. */
  readonly id: string;
}

/** The text of a `text/event-stream` to its events; text may be cut anywhere. */
export class ServerSentEventParser {
  #rest = '';
  #type = '';
  #data: string[] = [];
  #first = true;
  #id: string;

  /** What to send as Last-Event-ID, and how long to wait before a reconnect, once the server has said so. */
  lastEventId: string;
  retryMs: number | undefined;

  constructor(lastEventId: string) {
    this.lastEventId = lastEventId;
    this.#id = lastEventId;
  }

  push(text: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    let all = this.#rest + text;
    if (this.#first && all.length > 0) {
      this.#first = false;
      if (all.startsWith('\uFEFF')) all = all.slice(1);
    }
    let start = 0;
    // A return at the very end may be half of a line end: wait for what follows.
    const ends = /\r\n|\n|\r(?!$)/g;
    for (let end = ends.exec(all); end !== null; end = ends.exec(all)) {
      this.#line(all.slice(start, end.index), events);
      start = end.index + end[0].length;
    }
    this.#rest = all.slice(start);
    return events;
  }

  #line(line: string, events: ServerSentEvent[]): void {
    if (line === '') {
      // Only now: an id whose event was cut off has not been received.
      this.lastEventId = this.#id;
      if (this.#data.length > 0) {
        events.push({ type: this.#type || 'message', data: this.#data.join('\n'), id: this.lastEventId });
      }
      this.#type = '';
      this.#data = [];
      return;
    }
    const colon = line.indexOf(':');
    // A line that begins with a colon is a comment, sent to keep the connection alive.
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    if (field === 'data') this.#data.push(value);
    else if (field === 'event') this.#type = value;
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
    else if (field === 'retry' && /^\d+$/.test(value)) this.retryMs = Number(value);
  }
}
