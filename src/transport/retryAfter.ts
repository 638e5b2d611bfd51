const LONGEST_MS = 60_000;

/**
 * How long the server asks to wait, in milliseconds: `retry-after-ms`, then `retry-after` in seconds (fractions too),
 * then as an HTTP date. Zero, garbage and anything above a minute count as not said.
 */
export function retryAfterMs(headers: Readonly<Record<string, string>>, nowMs: number): number | undefined {
  const { 'retry-after-ms': milliseconds, 'retry-after': after } = headers;
  const delayMs = number(milliseconds) ?? number(after, 1000) ?? Date.parse(after ?? '') - nowMs;
  return delayMs > 0 && delayMs <= LONGEST_MS ? delayMs : undefined;
}

const number = (text = '', unit = 1): number | undefined => {
  const value = text.trim() === '' ? NaN : Number(text);
  return Number.isFinite(value) ? value * unit : undefined;
};
