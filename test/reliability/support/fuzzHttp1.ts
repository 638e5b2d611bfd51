import { createServer, type AddressInfo, type Socket } from 'node:net';

/** A server that answers a request in the way that its path asks for: `/name/way`. The answer is the name. */
export interface FuzzServer {
  readonly url: string;
  readonly ways: readonly string[];
  /** How often each request came. */
  readonly arrived: ReadonlyMap<string, number>;
  close(): Promise<void>;
}
/** The body of an answer that is larger than a client of the test takes. */
export const TOO_LARGE = 'z'.repeat(300_001);

const ok = (head: string, body: string): string => `HTTP/1.1 200 OK\r\n${head}\r\n\r\n${body}`;
const plain = (name: string): string => ok(`content-length: ${name.length}`, name);
const chunks = (name: string): string =>
  ok('transfer-encoding: chunked', `${[...name].map((letter) => `1\r\n${letter}\r\n`).join('')}0\r\n\r\n`);

/** What the server does with a request of this name; `next` when the connection may carry another. */
const WAYS: Readonly<Record<string, (socket: Socket, name: string, next: () => void) => void>> = {
  whole: (socket, name, next) => (socket.write(plain(name)), next()),
  pieces: (socket, name, next) => dribble(socket, `HTTP/1.1 100 Continue\r\n\r\n${plain(name)}`, next),
  chunks: (socket, name, next) => dribble(socket, chunks(name), next),
  late: (socket, name, next) => void setTimeout(() => (socket.write(plain(name)), next()), 5),
  'said to be the last': (socket, name) =>
    void socket.end(ok(`connection: close\r\ncontent-length: ${name.length}`, name)),
  'the last': (socket, name) => void socket.end(plain(name)),
  'closed a moment later': (socket, name) => void (socket.write(plain(name)), setTimeout(() => socket.end(), 2)),
  'reset a moment later': (socket, name) =>
    void (socket.write(plain(name)), setTimeout(() => socket.resetAndDestroy(), 2)),
  'up to the end': (socket, name) => void socket.end(ok('x: y', name)),
  'with more after it': (socket, name, next) => (socket.write(`${plain(name)}${plain('bad')}`), next()),
  malformed: (socket) => void socket.write(ok('content-length: x', '')),
  'cut by a reset': (socket, name) =>
    void (socket.write(plain(name).slice(0, 20)), setTimeout(() => socket.resetAndDestroy(), 2)),
  'cut by the end': (socket, name) => void socket.end(plain(name).slice(0, -1)),
  'too large': (socket, _, next) => (socket.write(ok(`content-length: ${TOO_LARGE.length}`, TOO_LARGE)), next()),
  never: () => undefined,
};
const EARLY = 'before it has read all';

function dribble(socket: Socket, text: string, done: () => void): void {
  let at = 0;
  const step = (): void => {
    if (socket.destroyed) return;
    const end = at + 1 + ((at * 7 + text.length) % 40);
    socket.write(text.slice(at, end));
    at = end;
    if (at < text.length) setImmediate(step);
    else done();
  };
  step();
}

/** Reads requests one after the other, and answers each in the way that its path asks for. */
function serve(socket: Socket, arrived: Map<string, number>): void {
  let text = '';
  let isBusy = false;
  let early: string | undefined;
  const next = (): void => {
    const head = /^POST \/(\d+)\/(\S+) [^]*?\r\n\r\n/.exec(text);
    if (isBusy || head === null) return;
    const [{ length }, name, way] = [head[0], head[1]!, decodeURIComponent(head[2]!)];
    if (way === EARLY && early !== name) socket.write(plain(name));
    if (early !== name) arrived.set(name, (arrived.get(name) ?? 0) + 1);
    early = name;
    const whole = length + Number(/content-length: (\d+)/.exec(head[0])![1]);
    if (text.length < whole) return;
    text = text.slice(whole);
    if (way === EARLY) return next();
    isBusy = true;
    WAYS[way]!(socket, name, () => {
      isBusy = false;
      next();
    });
  };
  socket.on('error', () => undefined);
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1');
    next();
  });
}

/** Over plain HTTP/1.1. */
export async function fuzzHttp1(): Promise<FuzzServer> {
  const arrived = new Map<string, number>();
  const server = createServer((socket) => serve(socket, arrived));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ways: [...Object.keys(WAYS), EARLY],
    arrived,
    close: async () => void (await new Promise((resolve) => server.close(resolve))),
  };
}
