import { randomBytes } from 'node:crypto';
import type { Either } from 'fp-ts/lib/Either.js';
import { asyncScheduler, isObservable, type MonoTypeOperatorFunction, type Observable, type SchedulerLike } from 'rxjs';
import type { TinkerEvent } from '../client/events.js';
import type { PendingWork } from '../client/session/pending.js';
import { flow$, type FlowReport } from '../operators/pressure/flow.js';
import type { Step } from '../operators/training/step.js';
import { evalPages } from './server/evalPages.js';
import { Feed } from './server/Feed.js';
import { servePage } from './server/servePage.js';
import type { SampleToShow, ShowSamplesOptions } from './server/sampleChanges.js';
import { FeedWriter, type ShowStepsOptions } from './server/FeedWriter.js';

export type { SampleToShow, ShowSamplesOptions, ShowStepsOptions };

/** What a dashboard shows. All of it is optional, and more can be shown later through the {@link Dashboard}. */
export interface DashboardSource {
  /** The events of a client; a `ServiceClient` has them. */
  readonly events$?: Observable<TinkerEvent>;
  /** What the client has to do at the moment, which it is asked four times a second; a `ServiceClient` can tell. */
  pending?(): PendingWork;
  /** A client whose events and pending work are shown. */
  readonly service?: {
    /** The client's events. */
    readonly events$: Observable<TinkerEvent>;
    /** The client's pending work. */
    pending?(): PendingWork;
  };
  /** The steps of a run, or of several by name. They are subscribed to: share them if they are also used elsewhere. */
  readonly steps?: Observable<Step> | Readonly<Record<string, Observable<Step>>>;
  /** Results of sampling. They are subscribed to as well. */
  readonly samples?: Observable<SampleToShow>;
  /** Folders that `metricsLog` or `rlLog` writes, or folders of such: shown as they are and as they grow. */
  readonly log?: string | readonly string[];
  /** What the named operators do, read while a page is open. Default: `flow$`, all those of this process. */
  readonly flow$?: Observable<readonly FlowReport[]>;
  /** Result files of evaluations, or folders of such: `/compare` puts two of them side by side. */
  readonly evals?: string | readonly string[];
}

/** Options of `serveDashboard`. */
export interface DashboardOptions {
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default 127.0.0.1. Anything else opens the page to the network: the token is then all that protects it. */
  readonly host?: string;
  /** What the address of the page has to carry. Default: random. Keep one to let open pages survive a restart. */
  readonly token?: string;
  /** Names under which the page may be asked for, beside `localhost` and addresses. Default none. */
  readonly allowedHosts?: readonly string[];
  /** Default 'tinker-rx'. */
  readonly title?: string;
  /** Tokens of samples to text: a tokenizer's `decode`. Default: the numbers. */
  readonly decode?: (tokens: ArrayLike<number>) => string;
  /** Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/** A page that is being served. */
export interface Dashboard {
  /** What to open in a browser. It contains the token: anyone who has it sees the page. */
  readonly url: string;
  /** The port it listens on. */
  readonly port: number;
  /** How many pages are connected. */
  readonly clients: number;
  /**
   * Shows steps on their way: `batches.pipe(train(…), dashboard.showSteps('first'))`, and of steps of reinforcement learning their
   * rollouts. Passes everything on as it is.
   */
  showSteps<T extends Step = Step>(run?: string, options?: ShowStepsOptions): MonoTypeOperatorFunction<T>;
  /** Shows results of sampling on their way: `prompts.pipe(sampleFrom(…), dashboard.showSamples({ decode }))`. Settled results, too: failures pass. */
  showSamples<T extends SampleToShow | Either<unknown, SampleToShow>>(
    options?: ShowSamplesOptions,
  ): MonoTypeOperatorFunction<T>;
  /** Ends every connection and stops listening. Safe to repeat. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const DEFAULT_RUN = 'run';

/**
 * Serves a live page over a client, its events, steps, samples or log folders.
 *
 * ```ts
 * const dashboard = await serveDashboard(service, { decode: (tokens) => tokenizer.decode(tokens) });
 * console.log(dashboard.url);
 * batches.pipe(train(trainer, options), dashboard.showSteps('first')).subscribe();
 * ```
 * If no steps are given, a model whose optimizer steps are in the events is shown as a separate run.
 * Pages that lose the connection come back and are sent what they missed. The end or error of a source is shown and
 * ends nothing else. Listens on this machine only by default; the address carries a token; keys are taken
 * out of everything that is sent. Rejects with the system's error when the port is taken.
 */
export async function serveDashboard(
  source: DashboardSource | Observable<TinkerEvent> = {},
  {
    port = 0,
    host = '127.0.0.1',
    token = randomBytes(16).toString('base64url'),
    allowedHosts = [],
    title = 'tinker-rx',
    scheduler = asyncScheduler,
    decode,
  }: DashboardOptions = {},
): Promise<Dashboard> {
  if (!/^[\w.~-]{8,}$/.test(token)) throw new RangeError('token must be at least 8 letters, digits, or any of _.~-');
  const feed = new Feed({ title, scheduler, boot: randomBytes(6).toString('hex') });
  const writer = new FeedWriter(feed, scheduler, decode);
  const access = { token, allowedHosts, host };
  const given: DashboardSource = isObservable(source) ? { events$: source } : source;
  const { evals = [] } = given;
  const more = evalPages(typeof evals === 'string' ? [evals] : evals);
  const server = await servePage(feed, { port, host, access, more }).catch((error: unknown) => {
    feed.close();
    throw error;
  });

  const { steps, samples, log = [] } = given;
  for (const client of [given, given.service]) {
    if (client?.events$ !== undefined) writer.subscribeEvents(client.events$);
    if (client?.pending !== undefined) writer.subscribeLoad(() => client.pending!());
  }
  writer.subscribeFlow(given.flow$ ?? flow$);
  const runs = steps === undefined ? {} : isObservable(steps) ? { [DEFAULT_RUN]: steps } : steps;
  for (const [run, each] of Object.entries(runs)) writer.subscribeSteps(run, each);
  if (samples !== undefined) writer.subscribeSamples(samples);
  for (const folder of typeof log === 'string' ? [log] : log) writer.subscribeLog(folder);

  const close = async () => {
    writer.close();
    feed.close();
    await server.close();
  };
  let closed: Promise<void> | undefined;
  const closeOnce = () => (closed ??= close());
  return {
    url: `http://${addressOf(host)}:${server.port}/?token=${token}`,
    port: server.port,
    get clients() {
      return feed.clients;
    },
    showSteps: <T extends Step>(run = DEFAULT_RUN, options?: ShowStepsOptions) => writer.showSteps<T>(run, options),
    showSamples: (options) => writer.showSamples(options),
    close: closeOnce,
    [Symbol.asyncDispose]: closeOnce,
  };
}

function addressOf(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}
