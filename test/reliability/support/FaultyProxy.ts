import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** How a proxy hurts a request. In each case but the first two the service has acted, or may have. */
export const WOUNDS = [
  'reset', // the connection is cut before anything is passed on
  'half request',
  'answer lost',
  'half answer',
  'stall', // everything is passed on, and no byte of the answer comes back
  'delay',
  'drip', // the answer comes a few bytes at a time
] as const;
export type Wound = (typeof WOUNDS)[number];

export interface FaultyProxyOptions {
  /** Gives the next request's wound, or none. */
  readonly next: () => Wound | undefined;
}

const DELAY_MS = 40;
const DRIP_MS = 2;
const DRIPS = 12;

/**
 * A TCP proxy before a service of HTTP/1.1. A request begins with the bytes that follow an answer; clients here send the next one on a
 * connection only when they have the answer to the last.
 */
export class FaultyProxy {
  /** Requests that came in. */
  requests = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #target: URL;

  private constructor(
    target: string,
    readonly options: FaultyProxyOptions,
  ) {
    this.#target = new URL(target);
    this.#server = createServer((near) => this.#carry(near));
  }

  static async start(target: string, options: FaultyProxyOptions): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(target, options);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Another service from here on, as after a restart. */
  set target(url: string) {
    this.#target = new URL(url);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #carry(near: Socket): void {
    const far = connect(Number(this.#target.port), this.#target.hostname);
    for (const socket of [near, far]) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    let wound: Wound | undefined;
    let forward = Promise.resolve();
    near.on('data', (chunk: Buffer) => {
      if (/^(?:GET|POST|PUT|DELETE) \//.test(chunk.subarray(0, 16).toString('latin1'))) {
        this.requests++;
        wound = this.options.next();
        if (wound === 'reset') return void near.resetAndDestroy();
        if (wound === 'half request') {
          far.write(chunk.subarray(0, chunk.length >> 1), () => far.destroy());
          return;
        }
        if (wound === 'delay') forward = forward.then(() => pause(DELAY_MS));
      }
      forward = forward.then(() => void far.write(chunk));
    });
    let back = Promise.resolve();
    far.on('data', (chunk: Buffer) => {
      if (wound === 'answer lost') return void near.resetAndDestroy();
      if (wound === 'stall') return;
      if (wound === 'half answer') {
        near.write(chunk.subarray(0, chunk.length >> 1), () => near.destroy());
        return;
      }
      const drips = wound === 'drip' ? DRIPS : 1;
      const size = Math.ceil(chunk.length / drips);
      for (let start = 0; start < chunk.length; start += size) {
        back = back.then(async () => {
          near.write(chunk.subarray(start, start + size));
          if (drips > 1) await pause(DRIP_MS);
        });
      }
    });
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
