/** A value as one line of JSON: typed arrays as arrays, bytes as base64, bigints as numbers if that is exact. */
export function jsonLine(value: unknown): string {
  return `${JSON.stringify(value, plain)}\n`;
}

function plain(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
  if (!ArrayBuffer.isView(value)) return value;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  return Array.from(value as unknown as ArrayLike<unknown>);
}
