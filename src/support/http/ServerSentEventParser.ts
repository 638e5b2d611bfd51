/** One event, as the server sent it. */
export interface ServerSentEvent {
  /** 'message' unless the server says otherwise. */
  readonly type: string;
  /** The event's text, its lines joined. */
  readonly data: string;
  /** The last id the server sent: a reconnect asks to continue from it. */
  readonly id: string;
}

/** What a header can carry besides Latin-1, which stands for the bytes of UTF-8: anything but control characters. */
const UNSENDABLE = /[\u0000-\u0008\u000a-\u001f\u007f]/;

/**
 * The text of a `text/event-stream` to its events; text may be cut anywhere.
 *
 * Every character is looked at once, however long a line is and in however many pieces it comes.
 */
export class ServerSentEventParser {
  /** The pieces of a line whose end has not come yet. */
  #pieces: string[] = [];
  #type = '';
  #data: string[] = [];
  /** Characters of the event so far, its line in the making included. */
  #length = 0;
  #first = true;
  #afterReturn = false;
  #id: string;

  /** What to send as Last-Event-ID, and how long to wait before a reconnect, once the server has said so. */
  lastEventId: string;
  retryMs: number | undefined;

  /** @param maxLength the longest event in characters; a longer one is a RangeError. */
  constructor(
    lastEventId = '',
    readonly maxLength = Infinity,
  ) {
    this.lastEventId = lastEventId;
    this.#id = lastEventId;
  }

  push(text: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    let start = 0;
    if (this.#first && text.length > 0) {
      this.#first = false;
      if (text.startsWith('\uFEFF')) start = 1;
    }
    // The first half of this line end came with the last piece.
    if (this.#afterReturn && text[start] === '\n') start++;
    if (text.length > 0) this.#afterReturn = text.endsWith('\r');
    const ends = /\r\n|\n|\r/g;
    ends.lastIndex = start;
    for (let end = ends.exec(text); end !== null; end = ends.exec(text)) {
      this.#keep(text.slice(start, end.index));
      const line = this.#pieces.length === 1 ? this.#pieces[0]! : this.#pieces.join('');
      this.#pieces = [];
      this.#line(line, events);
      start = end.index + end[0].length;
    }
    if (start < text.length) this.#keep(text.slice(start));
    return events;
  }

  #keep(piece: string): void {
    this.#length += piece.length;
    if (this.#length > this.maxLength) throw new RangeError(`an event is longer than ${this.maxLength} characters`);
    this.#pieces.push(piece);
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
      this.#length = 0;
      return;
    }
    const colon = line.indexOf(':');
    // A line that begins with a colon is a comment, sent to keep the connection alive.
    if (colon === 0) {
      this.#length -= line.length;
      return;
    }
    this.#length++;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    if (field === 'data') this.#data.push(value);
    else if (field === 'event') this.#type = value;
    // Ignores an id that cannot be sent back in a header.
    else if (field === 'id' && !UNSENDABLE.test(value)) this.#id = value;
    else if (field === 'retry' && /^\d+$/.test(value)) this.retryMs = Number(value);
  }
}
