import {
  Observable,
  catchError,
  defer,
  finalize,
  map,
  of,
  share,
  switchMap,
  tap,
  timer,
  repeat,
  ignoreElements,
  EMPTY,
  type SchedulerLike,
  type Subscription,
} from 'rxjs';
import { TinkerError, ValidationError } from '../wire/tinkerError.js';
import { CredentialStore } from './credentials.js';
import { LONGEST_TIMER_MS } from './system.js';

/** Where a request's `X-API-Key` comes from. The secret itself is kept where printing cannot reach it. */
export interface TokenSource {
  /** The current token, if one is available without waiting. */
  current(): string | undefined;
  /** The token, fetched or refreshed first where needed. */
  token(): Observable<string>;
  /** Stops refreshing in the background. */
  stop(): void;
}

/** No API key could be found, or the credential command failed. */
export class CredentialError extends TinkerError {
  readonly code = 'credential';
}

export interface CredentialOptions {
  readonly apiKey?: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly store?: CredentialStore;
  /** How long the credential command may take; a person may have to log in meanwhile. Default 300,000. */
  readonly commandTimeoutMs?: number;
}

const COMMAND_TIMEOUT_MS = 300_000;

/**
 * The user's credential: the argument, `TINKER_API_KEY`, the output of `TINKER_CREDENTIAL_CMD`, or the stored key.
 *
 * @throws ValidationError when there is none, or the key has a wrong prefix. No message shows the key.
 */
export function resolveCredential({ apiKey, environment, store, commandTimeoutMs }: CredentialOptions): TokenSource {
  const key = nonEmpty(apiKey) ?? nonEmpty(environment['TINKER_API_KEY']);
  const command = nonEmpty(environment['TINKER_CREDENTIAL_CMD']);
  if (key !== undefined && (isApiKey(key) || command === undefined)) return new StaticToken(key);
  if (command !== undefined) return new CommandToken(command, commandTimeoutMs);
  const stored = (store ?? new CredentialStore()).defaultKey();
  if (stored !== undefined) return new StaticToken(stored);
  throw new ValidationError(
    'no API key: pass apiKey, set TINKER_API_KEY or TINKER_CREDENTIAL_CMD, or store one with `tinker-rx auth login`',
  );
}

/** The credential command where the service demands it; a JWT in the key's place still wins. */
export function resolveCommandCredential(options: CredentialOptions): TokenSource {
  const key = nonEmpty(options.apiKey) ?? nonEmpty(options.environment['TINKER_API_KEY']);
  if (key?.startsWith('eyJ')) return new StaticToken(key);
  const command = nonEmpty(options.environment['TINKER_CREDENTIAL_CMD']);
  if (command !== undefined) return new CommandToken(command, options.commandTimeoutMs);
  throw new ValidationError(
    'this organisation requires TINKER_CREDENTIAL_CMD: set it to a command that prints a credential',
  );
}

const nonEmpty = (text: string | undefined): string | undefined =>
  text === undefined || text === '' ? undefined : text;
/** What a header can carry, without spaces. */
const SENDABLE = /^[\x21-\x7e]+$/;
const isApiKey = (key: string): boolean => key.startsWith('tml-') || key.startsWith('eyJ');

class StaticToken implements TokenSource {
  readonly #key: string;
  constructor(key: string) {
    if (!isApiKey(key)) throw new ValidationError("the API key must start with 'tml-'");
    if (!SENDABLE.test(key))
      throw new ValidationError('the API key holds a space, a line break or another character that cannot be sent');
    this.#key = key;
  }
  current(): string {
    return this.#key;
  }
  token(): Observable<string> {
    return of(this.#key);
  }
  stop(): void {}
}

/** Runs the command each time a token is asked for; its output is the credential. */
class CommandToken implements TokenSource {
  readonly #command: string;
  readonly #timeoutMs: number;
  constructor(command: string, timeoutMs = COMMAND_TIMEOUT_MS) {
    this.#command = command;
    this.#timeoutMs = timeoutMs;
  }
  current(): undefined {}
  token(): Observable<string> {
    return new Observable<string>((subscriber) => {
      const timeout = this.#timeoutMs;
      // Loaded when it is needed: few programs have such a command.
      const { exec } = process.getBuiltinModule('node:child_process');
      const child = exec(this.#command, { timeout }, (error, stdout) => {
        const credential = stdout.trim();
        if (error?.killed === true) {
          subscriber.error(new CredentialError(`TINKER_CREDENTIAL_CMD did not end within ${timeout / 1000} s`));
        } else if (SENDABLE.test(credential)) {
          subscriber.next(credential);
          subscriber.complete();
        } else if (credential !== '') {
          subscriber.error(
            new CredentialError('TINKER_CREDENTIAL_CMD must print one credential: it printed several lines or words'),
          );
        } else {
          const why = error === null ? 'printed nothing' : `failed with exit code ${String(error.code ?? 'unknown')}`;
          subscriber.error(new CredentialError(`TINKER_CREDENTIAL_CMD ${why}`));
        }
      });
      return () => child.kill();
    });
  }
  stop(): void {}
}

const REFRESH_BEFORE_EXPIRY_MS = 300_000;
const REFRESH_ON_DEMAND_MS = 60_000;
const RETRY_MS = 60_000;
const SHORTEST_REFRESH_MS = 10_000;

/** The claims of a JWT, or undefined where it is none. */
export function jwtClaims(jwt: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString('utf8')) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

function expiryMs(jwt: string): number | undefined {
  const exp = Number(jwtClaims(jwt)?.['exp']);
  return Number.isFinite(exp) ? exp * 1000 : undefined;
}

/**
 * Exchanges the credential for a short-lived JWT: refreshed in the background five minutes before it expires, and on
 * demand when a minute or less is left; one refresh at a time. A failed refresh falls back to the token at hand; a
 * failed first exchange is the user's error, as it is.
 *
 * While the current token is valid, a refresh is tried only once, so that requests do not wait for retries. Without a
 * valid token it is retried like any other request.
 */
export class JwtTokenSource implements TokenSource {
  #jwt: string | undefined;
  #background: Subscription | undefined;
  #stopped = false;
  readonly #fetch: Observable<string>;

  /** `exchange` asks once for a token; `patientExchange` asks until it gets one or gives up. */
  constructor(
    exchange: Observable<string>,
    patientExchange: Observable<string>,
    readonly scheduler: SchedulerLike,
  ) {
    this.#fetch = defer(() => (this.#leftMs > 0 ? exchange : patientExchange)).pipe(
      tap((jwt) => {
        this.#jwt = jwt;
      }),
      share(),
    );
  }

  current(): string | undefined {
    return this.#leftMs > REFRESH_ON_DEMAND_MS ? this.#jwt : undefined;
  }

  /** How long the current token is still valid. */
  get #leftMs(): number {
    return ((this.#jwt === undefined ? undefined : expiryMs(this.#jwt)) ?? 0) - this.scheduler.now();
  }

  token(): Observable<string> {
    return defer(() => {
      const current = this.current();
      if (current !== undefined) return of(current);
      return this.#fetch.pipe(
        tap(() => this.#refreshInBackground()),
        catchError((error: unknown) => {
          if (this.#jwt === undefined) throw error;
          return of(this.#jwt);
        }),
      );
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#background?.unsubscribe();
  }

  #refreshInBackground(): void {
    // A first exchange may be answered after the client was closed.
    if (this.#stopped || this.#background !== undefined) return;
    this.#background = defer(() => {
      const waitMs = this.#untilRefreshMs();
      const isLonger = waitMs > LONGEST_TIMER_MS;
      return timer(isLonger ? LONGEST_TIMER_MS : waitMs, this.scheduler).pipe(map(() => isLonger));
    })
      .pipe(
        switchMap((isLonger) => (isLonger ? EMPTY : this.#fetch)),
        catchError(() => timer(RETRY_MS, this.scheduler)),
        ignoreElements(),
        repeat(),
        finalize(() => (this.#background = undefined)),
        catchError(() => EMPTY),
      )
      .subscribe();
  }

  #untilRefreshMs(): number {
    const expires = this.#jwt === undefined ? undefined : expiryMs(this.#jwt);
    // A token that lives less than five minutes must not be fetched in a tight loop.
    return expires === undefined
      ? RETRY_MS
      : Math.max(SHORTEST_REFRESH_MS, expires - this.scheduler.now() - REFRESH_BEFORE_EXPIRY_MS);
  }
}
