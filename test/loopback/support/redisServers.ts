/** Redis for tests: the real server where it is installed, and a stand-in for the few commands of streams that the example uses. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

export interface RedisServer extends AsyncDisposable {
  readonly url: string;
}

/** Whether `redis-server` is on the path. */
export const hasRedis = (() => {
  try {
    execFileSync('redis-server', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

/** The real server on a free port of loopback, without a file. */
export async function startRedis(): Promise<RedisServer> {
  const free = createServer().listen(0, '127.0.0.1');
  await once(free, 'listening');
  const { port } = free.address() as AddressInfo;
  free.close();
  await once(free, 'close');
  const settings = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const server = spawn('redis-server', settings, { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of server.stdout) if (String(line).includes('Ready to accept connections')) break;
  return {
    url: `redis://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.kill();
      await closed;
    },
  };
}

type Reply = string | number | null | readonly Reply[] | ReadonlyMap<string, Reply> | Error;

/** RESP 3, the protocol that the official client speaks. */
function encode(reply: Reply): string {
  if (reply === null) return '_\r\n';
  if (typeof reply === 'number') return `:${reply}\r\n`;
  if (typeof reply === 'string') return `$${Buffer.byteLength(reply)}\r\n${reply}\r\n`;
  if (reply instanceof Error) return `-ERR ${reply.message}\r\n`;
  if (reply instanceof Map)
    return `%${reply.size}\r\n${[...(reply as Map<string, Reply>)].flat().map(encode).join('')}`;
  return `*${(reply as readonly Reply[]).length}\r\n${(reply as readonly Reply[]).map(encode).join('')}`;
}

interface Entry {
  readonly number: number;
  readonly fields: readonly string[];
}

/** One stream with one group and one consumer: XGROUP, XADD, XREADGROUP, XACK, XPENDING and DEL, as Redis documents them. */
export async function startStandIn(): Promise<RedisServer> {
  const sockets = new Set<Socket>();
  let entries: Entry[] = [];
  const pending = new Set<number>();
  let delivered = 0;
  const waiting = new Set<() => void>();
  const listOf = (list: readonly Entry[]): Reply => list.map(({ number, fields }) => [`${number}-0`, fields]);

  const commands: Readonly<Record<string, (args: readonly string[], socket: Socket) => Reply | undefined>> = {
    HELLO: () =>
      new Map<string, Reply>([
        ['server', 'redis'],
        ['version', '7.0.0'],
        ['proto', 3],
      ]),
    CLIENT: () => 'OK',
    XGROUP: () => 'OK',
    DEL: () => ((entries = []), 1),
    XADD: ([, , ...fields]) => {
      entries.push({ number: entries.length + 1, fields });
      for (const wake of [...waiting]) wake();
      return `${entries.length}-0`;
    },
    XACK: ([, , ...ids]) => ids.filter((id) => pending.delete(Number.parseInt(id, 10))).length,
    XPENDING: () => [pending.size, null, null, null],
    XREADGROUP: (args, socket) => {
      const count = Number(args[args.indexOf('COUNT') + 1]);
      const [stream, id] = args.slice(args.indexOf('STREAMS') + 1) as [string, string];
      if (id !== '>') {
        const again = entries.filter(({ number }) => pending.has(number) && number > Number.parseInt(id, 10));
        return new Map([[stream, listOf(again.slice(0, count))]]);
      }
      const fresh = entries.slice(delivered, delivered + count);
      if (fresh.length === 0) {
        const wake = () => {
          waiting.delete(wake);
          if (!socket.destroyed) socket.write(encode(commands['XREADGROUP']!(args, socket)!));
        };
        waiting.add(wake);
        socket.once('close', () => waiting.delete(wake));
        return undefined;
      }
      delivered += fresh.length;
      for (const { number } of fresh) pending.add(number);
      return new Map([[stream, listOf(fresh)]]);
    },
  };

  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => {});
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk) => {
      text += String(chunk);
      for (let taken = takeCommand(text); taken !== undefined; taken = takeCommand(text)) {
        text = taken.rest;
        const [name = '', ...args] = taken.words;
        const command = commands[name.toUpperCase()];
        const reply = command === undefined ? new Error(`the stand-in knows no ${name}`) : command(args, socket);
        if (reply !== undefined) socket.write(encode(reply));
      }
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The first whole command of a text, which is an array of strings. */
function takeCommand(text: string): { readonly words: string[]; readonly rest: string } | undefined {
  const head = /^\*(\d+)\r\n/.exec(text);
  if (head === null) return undefined;
  const words: string[] = [];
  let at = head[0].length;
  for (let word = 0; word < Number(head[1]); word++) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(at));
    if (size === null) return undefined;
    const from = at + size[0].length;
    at = from + Number(size[1]) + 2;
    if (text.length < at) return undefined;
    words.push(Buffer.from(text.slice(from, at - 2), 'latin1').toString('utf8'));
  }
  return { words, rest: text.slice(at) };
}
