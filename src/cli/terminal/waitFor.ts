import { EMPTY, type Observable, Subscription } from 'rxjs';
import type { TinkerEvent } from '../../client/events.js';
import { waitingFor } from '../../sinks/waiting/waitingFor.js';
import { CliError } from '../CliError.js';
import { INTERRUPTED, type Context } from '../context.js';
import { StatusLine, type Status } from './statusLine.js';

/** Fails after this many attempts to connect: a user at a terminal should not wait five minutes. */
const TRIES = 4;
/** What is done sooner needs no progress. */
const SHOW_AFTER_MS = 1000;
const TICK_MS = 100;

const BILLING = 'Check that billing is set up for your account.';
const SPINNER = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';

/** What is being waited for: words, or how far it is; undefined if something else shows that already. */
export type Label = string | (() => string | Status | undefined);

/**
 * Awaits work, and shows that and what it is waiting for once that takes longer than a second: on one line of a
 * terminal, or with a line of text every ten seconds elsewhere. Fails on Ctrl-C, and, unless it is `patient`, when the
 * service cannot be reached in four tries or wants to be paid.
 */
export async function waitFor<T>(
  context: Pick<Context, 'stderr' | 'now' | 'interrupted$'>,
  label: Label,
  work: PromiseLike<T>,
  events$: Observable<TinkerEvent> = EMPTY,
  { patient = false }: { readonly patient?: boolean } = {},
): Promise<T> {
  const { now, interrupted$ } = context;
  const startedMs = now();
  const line = new StatusLine(context);
  let waiting: string | undefined;
  const timer = setInterval(() => {
    const elapsedMs = now() - startedMs;
    if (elapsedMs < SHOW_AFTER_MS) return;
    const told = typeof label === 'string' ? label : label();
    if (told === undefined) return line.clear();
    const status = typeof told === 'string' ? spinning(context, told, elapsedMs) : told;
    line.show(waiting === undefined ? status : { ...status, facts: [...(status.facts ?? []), { text: waiting }] });
  }, TICK_MS);
  const watching = new Subscription();
  try {
    return await new Promise<T>((resolve, reject) => {
      watching.add(
        events$.subscribe((event) => {
          waiting = waitingFor(event, waiting);
          if (patient) return;
          if (event.type === 'request-retry' && event.error.code === 'connection' && event.attempt >= TRIES)
            reject(event.error);
          if (event.type === 'billing-paused')
            reject(new CliError('Billing issue', { details: `${BILLING}\nDetails: ${event.message}` }));
        }),
      );
      watching.add(interrupted$.subscribe(() => reject(new CliError('Interrupted', { exitCode: INTERRUPTED }))));
      work.then(resolve, reject);
    });
  } finally {
    clearInterval(timer);
    watching.unsubscribe();
    line.clear();
  }
}

/** Words and the time so far; on a terminal with a sign that turns, since nothing else moves. */
function spinning({ stderr }: Pick<Context, 'stderr'>, words: string, elapsedMs: number): Status {
  const sign = stderr.isTTY === true ? `${SPINNER[Math.floor(elapsedMs / TICK_MS) % SPINNER.length]} ` : '';
  return { label: `${sign}${words} … ${Math.floor(elapsedMs / 1000)} s` };
}
