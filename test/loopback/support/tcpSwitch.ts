import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A TCP server that does with each connection what it is told at the time: a server that is replaced by another at the same address. */
export class TcpSwitch {
  readonly sockets = new Set<Socket>();
  readonly #server: Server;

  private constructor(
    /** What is done with the next connections. */
    public behave: (socket: Socket) => void,
  ) {
    this.#server = createServer((socket) => {
      this.sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => this.sockets.delete(socket));
      this.behave(socket);
    });
  }

  static async start(behave: (socket: Socket) => void): Promise<TcpSwitch> {
    const made = new TcpSwitch(behave);
    await new Promise<void>((resolve) => made.#server.listen(0, 'localhost', resolve));
    return made;
  }

  get url(): string {
    return `https://localhost:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Does something else with the next connections, and closes those that are open. */
  turnTo(behave: (socket: Socket) => void): void {
    this.behave = behave;
    for (const socket of this.sockets) socket.destroy();
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** Passes a connection on to a server. */
export const passTo =
  (url: string) =>
  (near: Socket): void => {
    const { hostname, port } = new URL(url);
    const far = connect(Number(port), hostname);
    far.on('error', () => near.destroy());
    far.on('close', () => near.destroy());
    near.on('close', () => far.destroy());
    near.pipe(far).pipe(near);
  };
