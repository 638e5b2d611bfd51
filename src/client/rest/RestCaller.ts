import type * as t from 'io-ts';
import { concatMap, map, of, type Observable } from 'rxjs';
import type { CallOptions } from '../CallOptions.js';
import { closeWhenIdle, connect, type ConnectOptions } from '../connection/connect.js';
import type { Call, Connection } from '../connection/Connection.js';
import { Lifecycle } from '../session/Lifecycle.js';
import { logTo } from '../session/log.js';
import type { TinkerEvent } from '../events.js';
import { ValidationError } from '../../wire/tinkerError.js';
import type { TinkerFuture } from '../TinkerFuture.js';
import type { SocketTransport } from '../../transport/socketTransport.js';

/** A call in the lane of such clients. */
export type RestCall = Omit<Call, 'lane'>;

/** What the clients without a session have in common: a connection, and calls that say which method made them. */
export abstract class RestCaller {
  readonly #connection: Connection;
  readonly #lifecycle: Lifecycle;
  readonly #sockets: SocketTransport | undefined;
  /** Whether the connection is this client's, to be closed with it. */
  readonly #isOwn: boolean;

  constructor(options: ConnectOptions | { readonly connection: Connection; readonly lifecycle: Lifecycle } = {}) {
    if (typeof options !== 'object' || options === null) throw new ValidationError('options must be an object');
    this.#isOwn = !('connection' in options);
    if ('connection' in options) {
      this.#connection = options.connection;
      this.#lifecycle = options.lifecycle;
    } else {
      const { connection, sockets } = connect(options);
      this.#connection = connection;
      this.#lifecycle = new Lifecycle(connection);
      this.#sockets = sockets;
      logTo(connection.events.notable, options.logLevel);
    }
  }

  /** Everything that happens on this client's connection, as it happens. Hot; it never fails. */
  get events$(): Observable<TinkerEvent> {
    return this.#connection.events.events$;
  }

  /** Waits for pending calls and closes the connections. On `service.rest` it closes nothing: the service does. */
  close(): TinkerFuture<void> {
    return new Lifecycle(this.#connection).start(() =>
      this.#isOwn ? closeWhenIdle(this.#connection, this.#lifecycle, this.#sockets) : of(undefined),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** @internal */
  protected get connection(): Connection {
    return this.#connection;
  }

  /** A call that returns JSON. `call` throws for bad arguments; `sdkMethod` is the Python name of the method, which the service counts. */
  protected ask<A>(
    sdkMethod: string,
    call: () => RestCall,
    codec: t.Type<A, unknown>,
    options: CallOptions,
    names?: ReadonlySet<string>,
  ): TinkerFuture<A> {
    return this.start(options, () => this.asking(sdkMethod, call(), codec), names);
  }

  /** The same as part of a future's work: a future within a future could not be cancelled, and would fail twice. */
  protected asking<A>(sdkMethod: string, call: RestCall, codec: t.Type<A, unknown>): Observable<A> {
    return this.#connection.call(this.#named(sdkMethod, call), codec);
  }

  /** A call that returns nothing. */
  protected tell(sdkMethod: string, call: () => RestCall, options: CallOptions): TinkerFuture<void> {
    return this.start(options, () => {
      const named = this.#named(sdkMethod, call());
      return this.#connection.ready().pipe(
        concatMap(() => this.#connection.send(named)),
        map((): void => undefined),
      );
    });
  }

  /** `names` are the options that the call takes. Default: those of every call. */
  protected start<A>(
    options: CallOptions,
    work: () => Observable<A>,
    names?: ReadonlySet<string> | 'checked',
  ): TinkerFuture<A> {
    return this.#lifecycle.start(work, undefined, options, names);
  }

  #named(sdkMethod: string, call: RestCall): Call {
    const headers = { ...call.headers, 'x-sdk-version': this.#connection.sdkVersion, 'x-sdk-method': sdkMethod };
    return { ...call, lane: 'rest', headers };
  }
}
