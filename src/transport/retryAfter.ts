const LONGEST_MS = 60_000;

/**
 * How long the server asks to wait, in milliseconds: `retry-after-ms`, then `retry-after` in seconds (fractions too),
 * then as an HTTP date. Zero, garbage and anything above a minute count as not said.
 */
export function retryAfterMs(headers: Readonly<Record<string, string>>, nowMs: number): number | undefined {
  const delayMs =
    milliseconds(headers['retry-after-ms']) ?? seconds(headers['retry-after']) ?? date(headers['retry-after'], nowMs);
  return delayMs !== undefined && delayMs > 0 && delayMs <= LONGEST_MS ? delayMs : undefined;
}

const number = (text: string | undefined): number | undefined => {
  const value = text === undefined || text.trim() === '' ? NaN : Number(text);
  return Number.isFinite(value) ? value : undefined;
};
const milliseconds = number;
const seconds = (text: string | undefined): number | undefined => {
  const value = number(text);
  return value === undefined ? undefined : value * 1000;
};
const date = (text: string | undefined, nowMs: number): number | undefined => {
  const at = text === undefined ? NaN : Date.parse(text);
  return Number.isFinite(at) ? at - nowMs : undefined;
};
