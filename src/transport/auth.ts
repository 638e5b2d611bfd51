import {
  Observable,
  catchError,
  defer,
  finalize,
  of,
  share,
  switchMap,
  tap,
  timer,
  repeat,
  ignoreElements,
  type SchedulerLike,
  type Subscription,
} from 'rxjs';
import { longTimer } from '../support/longTimer.js';
import { TinkerError, ValidationError } from '../wire/tinkerError.js';
import { CredentialStore } from './credentials.js';

/** Where a request's `X-API-Key` comes from. The secret itself is kept where printing cannot reach it. */
export interface TokenSource {
  /** The current token, if one is available without waiting. */
  current(): string | undefined;
  /** The token, fetched or refreshed first where needed. */
  token(): Observable<string>;
  /** A new token instead of one that the service refused; undefined if there can be none. Default: there can be none. */
  renew?(refused: string): Observable<string> | undefined;
  /** Stops refreshing in the background. */
  stop(): void;
}

/** No API key could be found, or the credential command failed. */
export class CredentialError extends TinkerError {
  readonly code = 'credential';
}

export interface CredentialOptions {
  readonly apiKey?: string | undefined;
  /** Whether keys are those of the hosted service, which begin with `tml-`. Other servers have keys of any form. */
  readonly isHosted: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly store?: CredentialStore;
  /** How long the credential command may take; a person may have to log in meanwhile. Default 300,000. */
  readonly commandTimeoutMs?: number;
}

const COMMAND_TIMEOUT_MS = 300_000;

/**
 * The user's credential: the argument, `TINKER_API_KEY`, the output of `TINKER_CREDENTIAL_CMD`, or the stored key.
 *
 * @throws ValidationError when there is none, or it cannot be one of the hosted service's. No message shows the key.
 */
export function resolveCredential(options: CredentialOptions): TokenSource {
  const { apiKey, isHosted, environment, store, commandTimeoutMs } = options;
  const key = nonEmpty(apiKey) ?? nonEmpty(environment['TINKER_API_KEY']);
  const command = nonEmpty(environment['TINKER_CREDENTIAL_CMD']);
  const isUsable = key !== undefined && (!isHosted || isHostedKey(key) || command === undefined);
  if (isUsable) return new StaticToken(key, isHosted);
  if (command !== undefined) return new CommandToken(command, commandTimeoutMs);
  const stored = (store ?? new CredentialStore()).defaultKey();
  if (stored !== undefined) return new StaticToken(stored, isHosted);
  throw new ValidationError(
    'no API key: pass apiKey, set TINKER_API_KEY or TINKER_CREDENTIAL_CMD, or store one with `tinker-rx auth login`',
  );
}

/** The credential command where the service demands it; a JWT in the key's place still wins. */
export function resolveCommandCredential(options: CredentialOptions): TokenSource {
  const key = nonEmpty(options.apiKey) ?? nonEmpty(options.environment['TINKER_API_KEY']);
  if (key?.startsWith('eyJ')) return new StaticToken(key, options.isHosted);
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
const isHostedKey = (key: string): boolean => key.startsWith('tml-') || key.startsWith('eyJ');

class StaticToken implements TokenSource {
  readonly #key: string;
  constructor(key: string, isHosted: boolean) {
    if (isHosted && !isHostedKey(key)) throw new ValidationError("the API key must start with 'tml-'");
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

/** The claims of a JWT, or undefined if it is not one. */
export function jwtClaims(jwt: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString('utf8')) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

/** A token whose times make no sense is used for this long. */
const UNKNOWN_LIFETIME_MS = 10 * 60_000;

/**
 * How long a token is valid from when it was issued. It goes by the token's own times where it has both, since this machine's clock may
 * be wrong.
 */
function lifetimeMs(jwt: string, nowMs: number): number {
  const { exp, iat } = jwtClaims(jwt) ?? {};
  const issuedMs = typeof iat === 'number' ? iat * 1000 : nowMs;
  const lifetime = typeof exp === 'number' ? exp * 1000 - issuedMs : NaN;
  return lifetime > 0 ? lifetime : UNKNOWN_LIFETIME_MS;
}

/**
 * Exchanges the credential for a short-lived JWT: refreshed in the background five minutes before it expires, on
 * demand when a minute or less is left, and when the service refuses it; one refresh at a time. A failed refresh falls back to the
 * token at hand; a failed first exchange is the user's error, as it is.
 *
 * While the current token is valid, a refresh is tried only once, so that requests do not wait for retries. Without a
 * valid token it is retried like any other request.
 */
export class JwtTokenSource implements TokenSource {
  #jwt: string | undefined;
  #expiresMs = -Infinity;
  #background: Subscription | undefined;
  #stopped = false;
  readonly #fetch: Observable<string>;

  /** `exchange` asks once for a token; `patientExchange` asks until it gets one or gives up. */
  constructor(
    exchange: Observable<string>,
    patientExchange: Observable<string>,
    /** For durations. */
    readonly scheduler: SchedulerLike,
    readonly timeOfDay: Pick<SchedulerLike, 'now'>,
  ) {
    this.#fetch = defer(() => (this.#leftMs > 0 ? exchange : patientExchange)).pipe(
      tap((jwt) => {
        this.#jwt = jwt;
        this.#expiresMs = scheduler.now() + lifetimeMs(jwt, timeOfDay.now());
      }),
      share(),
    );
  }

  current(): string | undefined {
    return this.#leftMs > REFRESH_ON_DEMAND_MS ? this.#jwt : undefined;
  }

  /** How long the current token is still valid. */
  get #leftMs(): number {
    return this.#expiresMs - this.scheduler.now();
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

  renew(refused: string): Observable<string> {
    if (refused === this.#jwt) {
      this.#jwt = undefined;
      this.#expiresMs = -Infinity;
    }
    return this.token();
  }

  stop(): void {
    this.#stopped = true;
    this.#background?.unsubscribe();
  }

  #refreshInBackground(): void {
    // A first exchange may be answered after the client was closed.
    if (this.#stopped || this.#background !== undefined) return;
    // A token that lives less than five minutes must not be fetched in a tight loop.
    this.#background = defer(() =>
      longTimer(Math.max(SHORTEST_REFRESH_MS, this.#leftMs - REFRESH_BEFORE_EXPIRY_MS), this.scheduler),
    )
      .pipe(
        switchMap(() => this.#fetch),
        catchError(() => timer(RETRY_MS, this.scheduler)),
        ignoreElements(),
        repeat(),
        finalize(() => (this.#background = undefined)),
      )
      .subscribe();
  }
}
