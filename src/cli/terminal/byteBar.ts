import { clock, type Fact } from '../../support/terminal/progressLine.js';
import type { Context } from '../context.js';
import { size } from '../output/format.js';
import { StatusLine, type Status } from './statusLine.js';

/** How far a transfer is: a line of a terminal that stays there at the end, or a line of text now and then. */
export interface ByteBar {
  update(bytes: number, totalBytes: number | undefined): void;
  end(): void;
}

export function byteBar(context: Pick<Context, 'stderr' | 'now'>, label: string): ByteBar {
  const line = new StatusLine(context);
  const transfer = new Transfer(context.now);
  return {
    update: (bytes, totalBytes) => {
      transfer.update(bytes, totalBytes);
      line.show({ label, ...transfer.status() });
    },
    end: () => {
      if (transfer.begun) line.end({ label, ...transfer.status() });
    },
  };
}

/** Counts the bytes of a transfer, and how fast they come. */
export class Transfer {
  #started: { readonly atMs: number; readonly bytes: number } | undefined;
  #bytes = 0;
  #totalBytes: number | undefined;

  constructor(private readonly now: () => number) {}

  get begun(): boolean {
    return this.#started !== undefined;
  }

  get done(): boolean {
    return this.#totalBytes !== undefined && this.#bytes >= this.#totalBytes;
  }

  update(bytes: number, totalBytes: number | undefined): void {
    // Bytes that an earlier try brought say nothing about the speed of this one.
    this.#started ??= { atMs: this.now(), bytes };
    this.#bytes = bytes;
    this.#totalBytes = totalBytes;
  }

  status(): Pick<Status, 'fraction' | 'facts'> {
    const { atMs, bytes: before } = this.#started ?? { atMs: this.now(), bytes: 0 };
    const [bytes, totalBytes] = [this.#bytes, this.#totalBytes];
    const perSecond = ((bytes - before) * 1000) / Math.max(1, this.now() - atMs);
    const speed: Fact = { text: `${size(Math.round(perSecond))}/s`, keep: 1 };
    if (totalBytes === undefined) return { facts: [{ text: size(bytes) }, speed] };
    const leftMs = ((totalBytes - bytes) * 1000) / perSecond;
    return {
      fraction: totalBytes === 0 ? 1 : bytes / totalBytes,
      facts: [
        { text: `${size(bytes)} of ${size(totalBytes)}`, keep: 3.5 },
        speed,
        ...(Number.isFinite(leftMs) ? [{ text: `${clock(leftMs)} left`, keep: 3 }] : []),
      ],
    };
  }
}
