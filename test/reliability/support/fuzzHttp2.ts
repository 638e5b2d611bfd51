import { constants, createSecureServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { identity } from '../../loopback/support/fakeService.js';
import { resetWithoutError } from './FaultyHttp2.js';
import { TOO_LARGE, type FuzzServer } from './fuzzHttp1.js';

const OK = { ':status': 200 };
const plain = (name: string) => ({ ...OK, 'content-length': name.length });

function dribble(stream: ServerHttp2Stream, text: string): void {
  if (stream.destroyed) return;
  if (text === '') return void stream.end();
  stream.write(text.slice(0, 1));
  setImmediate(dribble, stream, text.slice(1));
}

/** The last stream of each connection that was read, and of those that said GOAWAY the last one that they named. */
const lastRead = new WeakMap<object, number>();
const lastNamed = new WeakMap<object, number>();

/** Says GOAWAY. Streams after the one it names count as unread, by this server as by the client, which sends them again. */
function endSession({ session }: ServerHttp2Stream, code: number): void {
  if (session === undefined) return;
  const last = lastRead.get(session) ?? 0;
  lastNamed.set(session, last);
  session.goaway(code, last);
}

/** Not while Node reads from the connection. */
const destroySession = ({ session }: ServerHttp2Stream): void => void setImmediate(() => session?.destroy());

/** What the server does with a request of this name once it has read all of it. */
const WAYS: Readonly<Record<string, (stream: ServerHttp2Stream, name: string) => void>> = {
  whole: (stream, name) => (stream.respond(plain(name)), stream.end(name)),
  'of unknown length': (stream, name) => (stream.respond(OK), stream.end(name)),
  pieces: (stream, name) => (stream.additionalHeaders({ ':status': 103 }), stream.respond(OK), dribble(stream, name)),
  late: (stream, name) => void setTimeout(() => !stream.destroyed && WAYS['whole']!(stream, name), 5),
  'with a reset after its end': (stream, name) => (
    stream.respond(OK),
    stream.end(name, () => stream.close(constants.NGHTTP2_NO_ERROR))
  ),
  'on a connection that has no more use': (stream, name) => (
    endSession(stream, constants.NGHTTP2_NO_ERROR),
    WAYS['late']!(stream, name)
  ),
  'an error that spoils the connection': (stream, name) => (
    stream.respond({ ...plain(name), ':status': 503 }),
    stream.end(name)
  ),
  cancelled: (stream) => stream.close(constants.NGHTTP2_CANCEL),
  'cut by a reset': (stream) => (
    stream.respond(plain('bad!')),
    stream.write('bad', () => stream.close(constants.NGHTTP2_INTERNAL_ERROR))
  ),
  'cut without an error': (stream) => (
    stream.respond(plain('bad!')),
    stream.write('bad', () => resetWithoutError(stream))
  ),
  'of unknown length, cut without an error': (stream) => (
    stream.respond(OK),
    stream.write('bad', () => resetWithoutError(stream))
  ),
  'cut by the end of the connection': (stream) => (
    stream.respond(OK),
    stream.write('bad', () => destroySession(stream))
  ),
  'an end of the connection': (stream) => destroySession(stream),
  'an error of the connection': (stream) => endSession(stream, constants.NGHTTP2_INTERNAL_ERROR),
  'too large': (stream) => (stream.respond(plain(TOO_LARGE)), stream.end(TOO_LARGE)),
  never: () => undefined,
};
const EARLY = 'before it has read all';
/** Such a request was not read: the transport may send it again. */
const REFUSED = 'refused';

/** Over TLS and HTTP/2. */
export async function fuzzHttp2(): Promise<FuzzServer> {
  const arrived = new Map<string, number>();
  const refusals = new Map<string, number>();
  const server = createSecureServer({ ...identity(), settings: { maxConcurrentStreams: 5 } });
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.on('session', (session) => session.on('error', () => undefined));
  server.on('stream', (stream, { ':path': path = '' }) => {
    stream.on('error', () => undefined);
    // Also what is refused is read: else the connection's window would fill, and every later body would wait.
    stream.resume();
    const { session, id = 0 } = stream;
    // A stream that ended before it was told of has no connection any more.
    if (session === undefined || id > (lastNamed.get(session) ?? Infinity)) return;
    lastRead.set(session, id);
    const [name, way] = path.slice(1).split('/').map(decodeURIComponent) as [string, string];
    const refused = refusals.get(name) ?? 0;
    if (way === REFUSED && refused < Number(name) % 6) {
      refusals.set(name, refused + 1);
      return stream.close(constants.NGHTTP2_REFUSED_STREAM);
    }
    arrived.set(name, (arrived.get(name) ?? 0) + 1);
    if (way === EARLY) return WAYS['with a reset after its end']!(stream, name);
    stream.on('end', () => !stream.destroyed && (WAYS[way] ?? WAYS['whole']!)(stream, name));
  });
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}`,
    ways: [...Object.keys(WAYS), EARLY, REFUSED],
    arrived,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      // Node's server does not always notice that a client has closed a connection which it was writing to.
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
