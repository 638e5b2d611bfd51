import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline, type Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { constants, createGzip } from 'node:zlib';
import { BehaviorSubject, distinctUntilChanged, interval, map, type SchedulerLike, Subscription } from 'rxjs';
import type { Change, DashboardMessage, Flow, Load } from '../state/changes.js';
import { DashboardState, PIECES_KEPT, weightOf } from '../state/DashboardState.js';
import { weightOfGroup } from '../state/Groups.js';
import { Ring } from '../state/Ring.js';
import { cover, redact } from './redact.js';

export interface FeedOptions {
  readonly title: string;
  readonly scheduler: SchedulerLike;
  /** What tells this server's ids from another's. */
  readonly boot: string;
}

interface Journaled {
  readonly number: number;
  readonly change: Change;
}

const JOURNAL = 20_000;
const CHARACTERS_A_PIECE = 10;
const FLUSH_MS = 100;
const KEEP_ALIVE_MS = 15_000;
/** Those with many rows or samples in them are a message each. */
const CHANGES_A_MESSAGE = 200;
const MANY_ROWS = 100;
/** How much is made before the page has read it. */
const AHEAD_BYTES = 2 * 1024 * 1024;
const MAX_WAITING_BYTES = 128 * 1024 * 1024;

/**
 * Changes on their way to any number of pages. A page that comes back with the id of the last message it saw is sent
 * what came since, as long as that is still in the journal; any other is told to forget what it has and is sent
 * everything. So a page misses nothing and shows nothing twice. New changes are sent ten times a second.
 */
export class Feed {
  readonly state = new DashboardState();
  readonly #options: FeedOptions;
  /** Changes that no page has been sent yet. */
  #pending: Journaled[] = [];
  readonly #journal = new Ring<Journaled>(JOURNAL, ({ change }) => weightOfChange(change), PIECES_KEPT);
  readonly #clients = new Set<Writable>();
  readonly #count$ = new BehaviorSubject(0);
  readonly #running = new Subscription();
  #number = 0;

  constructor(options: FeedOptions) {
    this.#options = options;
    const { scheduler } = options;
    this.#running.add(interval(FLUSH_MS, scheduler).subscribe(() => this.#flush()));
    this.#running.add(interval(KEEP_ALIVE_MS, scheduler).subscribe(() => this.#broadcast(': still here\n\n')));
  }

  /** Whether any page is connected, now and whenever that changes. */
  readonly watched$ = this.#count$.pipe(
    map((count) => count > 0),
    distinctUntilChanged(),
  );

  get clients(): number {
    return this.#clients.size;
  }

  push(given: Change): void {
    const change = given.kind === 'sample' ? { ...given, sample: cover(given.sample) } : given;
    this.state.apply(change);
    const journaled = { number: ++this.#number, change };
    this.#journal.push(journaled);
    this.#pending.push(journaled);
  }

  /** Tells what there is to do. Only the newest counts: a page that comes back is not sent what it missed. */
  setLoad(load: Load): void {
    const { atMs: _, ...before } = this.state.events.load ?? { atMs: 0 };
    const { atMs: __, ...now } = load;
    if (JSON.stringify(before) === JSON.stringify(now)) return;
    this.#tell({ kind: 'load', load });
  }

  /** Tells what the named operators do. Only the newest counts. */
  setFlow(flow: Flow): void {
    this.#tell({ kind: 'flow', flow });
  }

  #tell(change: Change): void {
    this.state.apply(change);
    this.#broadcast(this.#message([change]));
  }

  /** Answers with the changes, for as long as the page listens. */
  handle(request: IncomingMessage, response: ServerResponse): void {
    const zipped = /\bgzip\b/.test(String(request.headers['accept-encoding']));
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      ...(zipped ? { 'content-encoding': 'gzip' } : {}),
    });
    const page = zipped ? zip(response) : response;
    // A page may go away while it is written to; that is not an error.
    page.on('error', () => {});
    page.on('close', () => {
      this.#clients.delete(page);
      this.#count$.next(this.clients);
    });
    const seen = this.#lastSeen(request.headers['last-event-id']);
    if (seen !== undefined) this.#goOn(page, seen);
    else void this.#sendAll(page);
  }

  close(): void {
    this.#running.unsubscribe();
    for (const client of this.#clients) client.destroy();
    this.#clients.clear();
    this.#count$.complete();
  }

  /**
   * Sends the current state, one message at a time, so that training in this process is not blocked and a page can process the first messages early. What happens meanwhile is in the journal.
   */
  async #sendAll(page: Writable): Promise<void> {
    const { title, boot } = this.#options;
    const upTo = this.#number;
    const reset: DashboardMessage = { type: 'reset', nowMs: this.#nowMs, title };
    page.write(`data: ${redact(JSON.stringify(reset))}\n\n`);
    for (const changes of inMessages(this.state.changes(), (change) => change)) {
      page.write(this.#message(changes));
      await (page.writableLength < AHEAD_BYTES ? setImmediate() : drained(page));
      if (page.destroyed) return;
    }
    // The page gets an id only here: one that is cut off earlier starts again.
    page.write(`id: ${boot}-${upTo}\n\n`);
    if (this.#covers(upTo)) this.#goOn(page, upTo);
    // The journal no longer covers what happened meanwhile: the page must ask again.
    else page.destroy();
  }

  /** Sends everything after `seen`, and from now on what all pages are sent. */
  #goOn(page: Writable, seen: number): void {
    this.#flush();
    const missed = this.#journal.toArray().filter(({ number }) => number > seen);
    if (missed.length > 0) page.write(this.#text(missed));
    const { flow, events } = this.state;
    if (events.load !== undefined) page.write(this.#message([{ kind: 'load', load: events.load }]));
    if (flow !== undefined) page.write(this.#message([{ kind: 'flow', flow }]));
    page.write(': hello\n\n');
    this.#clients.add(page);
    this.#count$.next(this.clients);
  }

  /** Sends what is pending to all pages. */
  #flush(): void {
    const changes = this.#pending;
    this.#pending = [];
    if (changes.length > 0 && this.clients > 0) this.#broadcast(this.#text(changes));
  }

  #text(changes: readonly Journaled[]): string {
    let text = '';
    for (const some of inMessages(changes, ({ change }) => change)) {
      text += `id: ${this.#options.boot}-${some.at(-1)!.number}\n`;
      text += this.#message(some.map(({ change }) => change));
    }
    return text;
  }

  /** The text of a message of type `changes`. */
  #message(changes: readonly Change[]): string {
    const message: DashboardMessage = { type: 'changes', nowMs: this.#nowMs, changes };
    return `data: ${redact(JSON.stringify(message))}\n\n`;
  }

  #broadcast(text: string): void {
    for (const client of this.#clients) {
      client.write(text);
      // It does not read; others do not wait for it, and it may come back.
      if (client.writableLength > MAX_WAITING_BYTES) client.destroy();
    }
  }

  /** The number of the last change a page has, if all since can still be given. */
  #lastSeen(header: string | string[] | undefined): number | undefined {
    const [, boot, digits] = /^([^-]*)-(\d{1,15})$/.exec(String(header ?? '')) ?? [];
    if (boot !== this.#options.boot) return undefined;
    const seen = Number(digits);
    return this.#covers(seen) ? seen : undefined;
  }

  /** Whether everything after a change can still be given. */
  #covers(seen: number): boolean {
    const oldest = this.#journal.at(0)?.number ?? this.#number + 1;
    return seen >= oldest - 1 && seen <= this.#number;
  }

  get #nowMs(): number {
    return this.#options.scheduler.now();
  }
}

/** What a change takes of the journal. */
function weightOfChange(change: Change): number {
  if (change.kind === 'sample') return weightOf(change.sample);
  if (change.kind === 'group') return weightOfGroup(change.group) / CHARACTERS_A_PIECE;
  return change.kind === 'steps' ? change.index.length : 0;
}

const isLarge = (change: Change): boolean =>
  change.kind === 'samples' || change.kind === 'group' || (change.kind === 'steps' && change.index.length > MANY_ROWS);

/** Changes by the message: with rows, samples or a group of rollouts one is a message already. */
function* inMessages<T>(changes: Iterable<T>, changeOf: (value: T) => Change): Iterable<T[]> {
  let some: T[] = [];
  for (const value of changes) {
    some.push(value);
    if (!isLarge(changeOf(value)) && some.length < CHANGES_A_MESSAGE) continue;
    yield some;
    some = [];
  }
  if (some.length > 0) yield some;
}

/** What is written goes out compressed, each message at once: text of numbers takes a sixth of its size. */
function zip(response: ServerResponse): Writable {
  const gzip = createGzip({ level: constants.Z_BEST_SPEED, flush: constants.Z_SYNC_FLUSH });
  pipeline(gzip, response, () => {});
  return gzip;
}

/** When what was written is out, or the page is gone. */
function drained(page: Writable): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      page.off('drain', done);
      page.off('close', done);
      resolve();
    };
    page.on('drain', done);
    page.on('close', done);
  });
}
