import { EMPTY, type Observable, Subscription } from 'rxjs';
import type { TinkerEvent } from '../client/events.js';
import { waitingFor } from '../sinks/internal/waitingFor.js';
import { CliError } from './CliError.js';
import { INTERRUPTED, type Context } from './context.js';

/** So many tries without a connection: somebody at a terminal would rather be told than wait five minutes. */
const TRIES = 4;

const BILLING = 'Check that billing is set up for your account.';

/**
 * Awaits work, and shows on a terminal that and what it is waiting for once that takes longer than a second. Fails
 * on Ctrl-C, and, unless it is `patient`, when the service cannot be reached in four tries or wants to be paid.
 */
export async function waitFor<T>(
  { stderr, now, interrupted$ }: Pick<Context, 'stderr' | 'now' | 'interrupted$'>,
  label: string | (() => string),
  work: PromiseLike<T>,
  events$: Observable<TinkerEvent> = EMPTY,
  { patient = false }: { readonly patient?: boolean } = {},
): Promise<T> {
  const startedMs = now();
  let waiting: string | undefined;
  let drawn = false;
  const timer = setInterval(() => {
    if (stderr.isTTY !== true) return;
    drawn = true;
    const what = typeof label === 'string' ? label : label();
    const line = [`${what} … ${Math.round((now() - startedMs) / 1000)} s`, ...(waiting === undefined ? [] : [waiting])];
    stderr.write(`\r${line.join('  ').slice(0, (stderr.columns ?? 80) - 1)}\u001b[K`);
  }, 1000);
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
    if (drawn) stderr.write('\r\u001b[K');
  }
}
