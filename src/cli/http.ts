import { EnvHttpProxyAgent, fetch, type RequestInit, type Response } from 'undici';

/** Plain HTTP with the usual proxy variables, for what lies beside the protocol: downloads, health, the hub. */
export class Http {
  readonly #agent = new EnvHttpProxyAgent();

  fetch(url: string, init: RequestInit = {}): Promise<Response> {
    return fetch(url, { ...init, dispatcher: this.#agent });
  }

  close(): Promise<void> {
    return this.#agent.close();
  }

  /** Also ends requests in flight. */
  destroy(): Promise<void> {
    return this.#agent.destroy();
  }
}

/** Runs work with HTTP, and closes its connections. */
export async function withHttp<T>(work: (http: Http) => Promise<T>): Promise<T> {
  const http = new Http();
  try {
    const result = await work(http);
    await http.close();
    return result;
  } catch (error) {
    await http.destroy();
    throw error;
  }
}

/** Why no answer came, in the system's words: `fetch failed` alone says nothing. */
export function failureOf(error: unknown): string {
  const { message, cause } = error as { readonly message?: string; readonly cause?: unknown };
  const inner = cause instanceof AggregateError ? (cause.errors[0] as Error) : (cause as Error | undefined);
  return inner?.message || message || String(error);
}
