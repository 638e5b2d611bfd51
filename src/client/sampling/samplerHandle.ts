import { isLeft } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import { Subject, of, type Observable } from 'rxjs';
import type { SocketTransport } from '../../transport/socketTransport.js';
import { describeErrors, optional, response, withDefault } from '../../wire/record.js';
import { ClientConfig, DynamicConfig } from '../../wire/session.js';
import { ValidationError, type TinkerError } from '../../wire/tinkerError.js';
import { closeWhenIdle, connect, type ConnectOptions } from '../connection/connect.js';
import { Lifecycle } from '../session/Lifecycle.js';
import { logTo } from '../session/log.js';
import { CLONES } from './Samples.js';
import { cancelOnServer, openSession, type OpenSession } from '../session/Session.js';

/** The same fields as the Python SDK's handle, so that a handle made there opens here and the other way round. */
const SamplerHandle = response('SamplerHandle', {
  session_id: t.string,
  sampling_session_id: t.string,
  holder: response('holder', {
    base_url: t.string,
    default_headers_overrides: withDefault(t.record(t.string, t.string), {}),
    client_config: ClientConfig,
    client_dynamic_config: DynamicConfig,
    api_key: optional(t.string),
  }),
  record_stability_info: withDefault(t.boolean, false),
});

export function toSamplerHandle(session: OpenSession, samplingSessionId: string, recordStabilityInfo: boolean): string {
  const { baseUrl, headers, config } = session.connection;
  const json = SamplerHandle.encode({
    sessionId: session.id,
    samplingSessionId,
    holder: {
      baseUrl: baseUrl.href,
      defaultHeadersOverrides: headers,
      clientConfig: config,
      clientDynamicConfig: session.dynamicConfig.value,
    },
    recordStabilityInfo,
  });
  // With padding, which Python's decoder requires.
  return Buffer.from(JSON.stringify(json)).toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}

interface SharedSession {
  readonly session: OpenSession;
  readonly lifecycle: Lifecycle;
  readonly sockets: SocketTransport | undefined;
  /** How many clients use it. */
  users: number;
}
/** One per service, session and credential: clients made from handles share budgets and pauses like any others. */
const shared = new Map<string, SharedSession>();

/** @throws ValidationError when the text is not a handle. */
export function openSharedSession(
  handle: string,
  options: ConnectOptions,
): {
  readonly session: OpenSession;
  readonly lifecycle: Lifecycle;
  readonly samplingSessionId: string;
  readonly recordStabilityInfo: boolean;
  readonly clone: number | 'join';
  /** Leaves the session; the last one to leave waits for pending calls and closes the connections. */
  readonly leave: () => Observable<void>;
} {
  const { sessionId, samplingSessionId, holder, recordStabilityInfo } = parseHandle(handle);
  const key = JSON.stringify([holder.baseUrl, sessionId]);
  // A custom transport or key is not shared.
  const isPrivate = options.transport !== undefined || options.apiKey !== undefined || options.credential !== undefined;
  let entry = isPrivate ? undefined : shared.get(key);
  if (entry === undefined) {
    entry = open(sessionId, holder, options);
    if (!isPrivate) shared.set(key, entry);
  }
  const { session, lifecycle } = entry;
  const { config, random } = session.connection;
  const clone = config.sampleJoinSamplingSession ? 'join' : 1 + Math.floor(random() * CLONES);
  entry.users++;
  const used = entry;
  let left = false;
  const leave = (): Observable<void> => {
    if (!left) used.users--;
    left = true;
    if (used.users > 0) return of(undefined);
    if (shared.get(key) === used) shared.delete(key);
    return closeWhenIdle(session.connection, lifecycle, used.sockets);
  };
  return { session, lifecycle, samplingSessionId, recordStabilityInfo, clone, leave };
}

function open(
  sessionId: string,
  holder: t.TypeOf<typeof SamplerHandle>['holder'],
  options: ConnectOptions,
): SharedSession {
  const { connection, sockets } = connect({
    ...options,
    baseUrl: holder.baseUrl,
    defaultHeaders: holder.defaultHeadersOverrides,
    config: holder.clientConfig,
  });
  // The flags are known, so this is over at once; it fails where they ask for a credential that does not exist.
  let failure: TinkerError | undefined;
  connection.ready().subscribe({ error: (error: TinkerError) => (failure = error) });
  if (failure !== undefined) {
    connection.close();
    void sockets?.close();
    throw failure;
  }
  logTo(connection.events.notable, options.logLevel);
  const cancels = new Subject<string>();
  const session = openSession(connection, sessionId, holder.clientDynamicConfig, (requestId) =>
    cancels.next(requestId),
  );
  cancelOnServer(session, cancels).subscribe();
  return { session, lifecycle: new Lifecycle(connection), sockets, users: 0 };
}

function parseHandle(handle: string): t.TypeOf<typeof SamplerHandle> {
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(handle, 'base64').toString('utf8'));
  } catch {
    throw new ValidationError('not a sampler handle: it must come from getSamplerHandle()');
  }
  const decoded = SamplerHandle.decode(json);
  if (isLeft(decoded)) throw new ValidationError(`not a sampler handle: ${describeErrors(decoded.left)}`);
  return decoded.right;
}
