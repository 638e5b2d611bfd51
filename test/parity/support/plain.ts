import { TensorData } from '../../../src/wire/tensor.js';
import type { Json } from './fixture.js';

const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/**
 * A result of this library in the form in which the fixtures hold the SDK's: snake_case names, tensors as
 * `{dtype, shape, data}`, numbers that JSON has no sign for as `{"$number": "NaN"}`.
 */
export function plain(value: unknown): Json {
  if (typeof value === 'number') return Number.isFinite(value) ? value : { $number: String(value) };
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  if (value === undefined) return null;
  if (value instanceof TensorData) {
    const { dtype, shape, data, sparse } = value;
    const dense = { dtype, shape: [...shape], data: plain(data) };
    if (sparse === undefined) return dense;
    return { ...dense, crow_indices: [...sparse.crowIndices], col_indices: [...sparse.colIndices] };
  }
  if (ArrayBuffer.isView(value)) return Array.from(value as Float32Array, plain);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === 'object') return plainRecord(value as Record<string, unknown>);
  throw new TypeError(`no plain form for ${typeof value}`);
}

/** Maps whose keys are the server's or the user's own: they stay. */
const MAPS = new Set(['metrics', 'userMetadata', 'urls', 'eventDetails']);

function plainRecord(record: Record<string, unknown>): Json {
  return Object.fromEntries(
    Object.entries(record)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [
        snake(name),
        MAPS.has(name) ? keepKeys(value as Record<string, unknown>) : plain(value),
      ]),
  );
}

const keepKeys = (map: Record<string, unknown>): Json =>
  Object.fromEntries(Object.entries(map).map(([key, item]) => [key, plain(item)]));

/** The other way round, for numbers: what a fixture says, as a JavaScript number. */
export const toNumber = (value: Json): number =>
  typeof value === 'object' ? Number((value as { $number: string }).$number) : Number(value);
