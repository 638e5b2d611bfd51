import type { IncomingMessage, ServerResponse } from 'node:http';
import { bufferTime, filter, interval, Subject, Subscription, type SchedulerLike } from 'rxjs';
import type { Change, DashboardMessage } from '../state/changes.js';
import { DashboardState, PIECES_KEPT, weightOf } from '../state/DashboardState.js';
import { Ring } from '../state/Ring.js';
import { packSteps } from './packSteps.js';
import { redact } from './redact.js';

export interface FeedOptions {
  readonly title: string;
  readonly budgetBytes: number;
  readonly scheduler: SchedulerLike;
  /** What tells this server's ids from another's. */
  readonly boot: string;
}

interface Journaled {
  readonly number: number;
  readonly change: Change;
}

const JOURNAL = 20_000;
const FLUSH_MS = 100;
const KEEP_ALIVE_MS = 15_000;
const CHANGES_A_MESSAGE = 50;
const MAX_WAITING_BYTES = 128 * 1024 * 1024;

/**
 * Changes on their way to any number of pages. A page that comes back with the id of the last message it saw is sent
 * what came since, as long as that is still in the journal; any other is told to forget what it has and is sent
 * everything. So a page misses nothing and shows nothing twice. New changes are sent ten times a second.
 */
export class Feed {
  readonly state = new DashboardState();
  readonly #options: FeedOptions;
  readonly #changes = new Subject<Journaled>();
  readonly #journal = new Ring<Journaled>(
    JOURNAL,
    ({ change }) => (change.kind === 'sample' ? weightOf(change.sample) : 0),
    PIECES_KEPT,
  );
  readonly #clients = new Set<ServerResponse>();
  /** The last change each page had when it came. */
  readonly #skip = new WeakMap<ServerResponse, number>();
  readonly #running = new Subscription();
  #number = 0;
  #sent = 0;

  constructor(options: FeedOptions) {
    this.#options = options;
    const { scheduler } = options;
    this.#running.add(
      this.#changes
        .pipe(
          bufferTime(FLUSH_MS, scheduler),
          filter((changes) => changes.length > 0),
        )
        .subscribe((changes) => this.#flush(changes)),
    );
    this.#running.add(interval(KEEP_ALIVE_MS, scheduler).subscribe(() => this.#broadcast(': still here\n\n')));
  }

  get clients(): number {
    return this.#clients.size;
  }

  push(change: Change): void {
    this.state.apply(change);
    const journaled = { number: ++this.#number, change };
    this.#journal.push(journaled);
    this.#changes.next(journaled);
  }

  /** Answers with the changes, for as long as the page listens. */
  handle(request: IncomingMessage, response: ServerResponse): void {
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    const seen = this.#lastSeen(request.headers['last-event-id']);
    if (seen === undefined) this.#sendAll(response);
    else this.#sendSince(response, seen);
    response.write(': hello\n\n');
    this.#clients.add(response);
    const leave = () => this.#clients.delete(response);
    response.on('close', leave);
    // A page that goes away while it is written to is no failure of ours.
    response.on('error', leave);
  }

  close(): void {
    this.#running.unsubscribe();
    for (const client of this.#clients) client.destroy();
    this.#clients.clear();
  }

  /** The state, with changes that wait for the next flush: this page must not be sent them again. */
  #sendAll(response: ServerResponse): void {
    const { title, budgetBytes } = this.#options;
    response.write(this.#message({ type: 'reset', nowMs: this.#nowMs, title, budgetBytes }));
    let some: Change[] = [];
    const flush = () => {
      if (some.length > 0) response.write(this.#message({ type: 'changes', nowMs: this.#nowMs, changes: some }));
      some = [];
    };
    for (const change of this.state.changes()) {
      some.push(change);
      if (change.kind === 'steps' || some.length >= CHANGES_A_MESSAGE) flush();
    }
    flush();
    // Only here does the page get an id: one that was cut off before it has nothing to go on from.
    response.write(`id: ${this.#options.boot}-${this.#number}\n\n`);
    this.#skip.set(response, this.#number);
  }

  #flush(changes: readonly Journaled[]): void {
    this.#sent = changes.at(-1)!.number;
    const texts = new Map<number, string>();
    for (const client of this.#clients) {
      const skip = this.#skip.get(client) ?? 0;
      const from = changes[0]!.number > skip ? 0 : changes.filter(({ number }) => number <= skip).length;
      if (from === changes.length) continue;
      let text = texts.get(from);
      if (text === undefined) texts.set(from, (text = this.#text(changes.slice(from))));
      this.#write(client, text);
    }
  }

  /** What was sent to others after `seen`; what waits for the next flush comes with that. */
  #sendSince(response: ServerResponse, seen: number): void {
    const missed = this.#journal.toArray().filter(({ number }) => number > seen && number <= this.#sent);
    if (missed.length > 0) response.write(this.#text(missed));
    this.#skip.set(response, seen);
  }

  #text(changes: readonly Journaled[]): string {
    let text = '';
    for (let start = 0; start < changes.length; start += CHANGES_A_MESSAGE) {
      const end = Math.min(changes.length, start + CHANGES_A_MESSAGE);
      const packed = packSteps(changes.slice(start, end).map(({ change }) => change));
      text += `id: ${this.#options.boot}-${changes[end - 1]!.number}\n`;
      text += this.#message({ type: 'changes', nowMs: this.#nowMs, changes: packed });
    }
    return text;
  }

  #message(message: DashboardMessage): string {
    return `data: ${redact(JSON.stringify(message))}\n\n`;
  }

  #broadcast(text: string): void {
    for (const client of this.#clients) this.#write(client, text);
  }

  #write(client: ServerResponse, text: string): void {
    client.write(text);
    // It does not read; others do not wait for it, and it may come back.
    if (client.writableLength > MAX_WAITING_BYTES) client.destroy();
  }

  /** The number of the last change a page has, if all since can still be given. */
  #lastSeen(header: string | string[] | undefined): number | undefined {
    const [, boot, digits] = /^([^-]*)-(\d{1,15})$/.exec(String(header ?? '')) ?? [];
    if (boot !== this.#options.boot) return undefined;
    const seen = Number(digits);
    const oldest = this.#journal.at(0)?.number ?? this.#number + 1;
    return seen >= oldest - 1 && seen <= this.#number ? seen : undefined;
  }

  get #nowMs(): number {
    return this.#options.scheduler.now();
  }
}
