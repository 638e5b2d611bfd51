import { describe, expect, it } from 'vitest';
import { retryAfterMs } from '../../../src/transport/retryAfter.js';

const NOW = Date.UTC(2026, 0, 31, 12, 0, 0);

describe('retryAfterMs', () => {
  it.each<[Record<string, string>, number | undefined]>([
    [{}, undefined],
    [{ 'retry-after-ms': '1500' }, 1500],
    [{ 'retry-after-ms': '0.5' }, 0.5],
    [{ 'retry-after': '3' }, 3000],
    [{ 'retry-after': '0.25' }, 250],
    [{ 'retry-after': ' 2 ' }, 2000],
    [{ 'retry-after': '60' }, 60_000],
    [{ 'retry-after': '60.001' }, undefined],
    [{ 'retry-after': '0' }, undefined],
    [{ 'retry-after': '-1' }, undefined],
    [{ 'retry-after': 'Infinity' }, undefined],
    [{ 'retry-after': 'NaN' }, undefined],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '' }, undefined],
    [{ 'retry-after': 'Sat, 31 Jan 2026 12:00:30 GMT' }, 30_000],
    [{ 'retry-after': 'Sat, 31 Jan 2026 11:59:30 GMT' }, undefined],
    [{ 'retry-after': 'Sat, 31 Jan 2026 13:00:00 GMT' }, undefined],
    [{ 'retry-after-ms': 'x', 'retry-after': '5' }, 5000],
    [{ 'retry-after-ms': '100', 'retry-after': '5' }, 100],
  ])('%j is %s', (headers, expected) => {
    expect(retryAfterMs(headers, NOW)).toBe(expected);
  });
});
