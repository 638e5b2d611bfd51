import { clock } from '../sinks/internal/progressLine.js';
import type { Context } from './context.js';
import { size } from './format.js';

/** How far a transfer is, on one line of a terminal; nothing elsewhere. */
export interface ByteBar {
  update(bytes: number, totalBytes: number | undefined): void;
  end(): void;
}

const REDRAW_MS = 100;
const CELLS = 24;

export function byteBar({ stderr, now }: Pick<Context, 'stderr' | 'now'>, label: string): ByteBar {
  const startedMs = now();
  let first = 0;
  let drawnMs = -Infinity;
  let state: { readonly bytes: number; readonly totalBytes: number | undefined } | undefined;
  const draw = () => {
    if (stderr.isTTY !== true || state === undefined) return;
    drawnMs = now();
    const { bytes, totalBytes } = state;
    // Bytes that an earlier try brought say nothing about the speed of this one.
    const perSecond = ((bytes - first) * 1000) / Math.max(1, drawnMs - startedMs);
    const facts = [
      label,
      ...(totalBytes === undefined ? [size(bytes)] : bar(bytes, totalBytes)),
      `${size(Math.round(perSecond))}/s`,
    ];
    if (totalBytes !== undefined && perSecond > 0)
      facts.push(`${clock(((totalBytes - bytes) * 1000) / perSecond)} left`);
    stderr.write(`\r${facts.join('  ').slice(0, (stderr.columns ?? 80) - 1)}\u001b[K`);
  };
  return {
    update: (bytes, totalBytes) => {
      if (state === undefined) first = bytes;
      state = { bytes, totalBytes };
      if (now() - drawnMs >= REDRAW_MS) draw();
    },
    end: () => {
      draw();
      if (stderr.isTTY === true && state !== undefined) stderr.write('\n');
    },
  };
}

function bar(bytes: number, totalBytes: number): string[] {
  const share = totalBytes === 0 ? 1 : bytes / totalBytes;
  const filled = Math.round(share * CELLS);
  return [
    `${'█'.repeat(filled)}${'░'.repeat(CELLS - filled)}`,
    `${Math.floor(share * 100)} %`,
    `${size(bytes)} of ${size(totalBytes)}`,
  ];
}
