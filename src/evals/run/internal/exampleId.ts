import { createHash } from 'node:crypto';

const digest = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The id of a task: its own `id` if it has one, else a digest of what it holds, whatever the order of its keys. */
export function exampleId(task: unknown): string {
  const own = typeof task === 'object' && task !== null ? (task as { readonly id?: unknown }).id : undefined;
  if (typeof own === 'string' && own !== '') return own;
  if (typeof own === 'number') return String(own);
  return digest(canonical(task)).slice(0, 16);
}

/** Tells examples of the same id apart: the second is `id~2`. */
export function distinctIds(): (id: string) => string {
  const seen = new Map<string, number>();
  return (id) => {
    const times = (seen.get(id) ?? 0) + 1;
    seen.set(id, times);
    return times === 1 ? id : `${id}~${times}`;
  };
}

/** A whole number that depends on the id alone, for seeds. */
export const idNumber = (id: string): number => parseInt(digest(id).slice(0, 12), 16);

function canonical(value: unknown): string {
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value) || ArrayBuffer.isView(value))
    return `[${Array.from(value as ArrayLike<unknown>, canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const entries = Object.entries(value).filter(([, inside]) => inside !== undefined);
  return `{${entries
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, inside]) => `${JSON.stringify(key)}:${canonical(inside)}`)
    .join(',')}}`;
}
