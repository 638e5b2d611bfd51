import type { Exchange } from '../Exchange.js';

/** A connection of HTTP/1.1, opened when it is needed and again when it was lost. It carries one exchange at a time. */
export interface Http1Connection {
  /** Sends the request. `onDone` is called once, when the connection has no more to do with it. */
  carry(exchange: Exchange, onDone: () => void): void;
  /** Waits for the exchange that it carries. */
  close(): Promise<void>;
  /** Fails the exchange that it carries. */
  destroy(): Promise<void>;
}
