import type { AdminClient, RestClient, ServiceClient, ServiceClientOptions } from '../client/index.js';
import { CliError } from './CliError.js';
import { INTERRUPTED, note, type Context } from './context.js';
import { waitFor, type Label } from './terminal/waitFor.js';

const target = ({ baseUrl }: Context) => (baseUrl === undefined ? {} : { baseUrl });

const isVerbose = (): boolean => (process.env['TINKER_LOG'] ?? '') !== '';
/** The progress line says what is waited for; the client's own log would write across it. */
export const quiet = (): { readonly logLevel?: 'silent' } => (isVerbose() ? {} : { logLevel: 'silent' });

/** Asks the service something that needs no session, and closes the connection. */
export async function withRest<T>(
  context: Context,
  label: Label,
  work: (rest: RestClient) => PromiseLike<T>,
): Promise<T> {
  const { RestClient } = await import('../client/index.js');
  return ask(context, label, new RestClient({ ...target(context), ...quiet() }), work);
}

/** The same, for what an organisation's administrators ask. */
export async function withAdmin<T>(
  context: Context,
  label: Label,
  work: (admin: AdminClient) => PromiseLike<T>,
): Promise<T> {
  const { AdminClient } = await import('../client/index.js');
  return ask(context, label, new AdminClient({ ...target(context), ...quiet() }), work);
}

async function ask<C extends RestClient | AdminClient, T>(
  context: Context,
  label: Label,
  client: C,
  work: (client: C) => PromiseLike<T>,
): Promise<T> {
  const answer = await waitFor(context, label, work(client), client.events$);
  // After a failure, closing could wait for retries. The end of the process closes the connection.
  await client.close();
  return answer;
}

/** A client with a session. What the service wants to be shown goes to standard error, around the progress line. */
export async function openService(context: Context, options: ServiceClientOptions = {}): Promise<ServiceClient> {
  const { ServiceClient, describeEvent } = await import('../client/index.js');
  const service = new ServiceClient({
    ...target(context),
    ...options,
    ...quiet(),
  });
  if (!isVerbose()) {
    service.events$.subscribe((event) => {
      if (event.type !== 'session-message' && event.type !== 'deprecation-noted') return;
      const entry = describeEvent(event);
      if (entry !== undefined && entry.level !== 'debug') note(context, entry.text);
    });
  }
  return service;
}

/** Runs work with a service, and tells the service how it ended. */
export async function withService<T>(
  context: Context,
  work: (service: ServiceClient) => Promise<T>,
  options: ServiceClientOptions = {},
): Promise<T> {
  const service = await openService(context, options);
  try {
    const result = await work(service);
    // The work is done, so Ctrl-C here is no failure.
    await waitFor(context, 'closing the session', service.close()).catch(() => undefined);
    return result;
  } catch (error) {
    const interrupted = error instanceof CliError && error.exitCode === INTERRUPTED;
    await service.destroy({ status: interrupted ? 'interrupted' : 'errored' });
    throw error;
  }
}
