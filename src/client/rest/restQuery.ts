import { ValidationError } from '../../wire/tinkerError.js';

/** A path with its query; undefined values are left out. */
export function withQuery(path: string, query: Readonly<Record<string, string | number | undefined>>): string {
  const pairs = Object.entries(query).filter((pair): pair is [string, string | number] => pair[1] !== undefined);
  if (pairs.length === 0) return path;
  return `${path}?${new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, String(value)])).toString()}`;
}

/**
 * An id as path segments: slashes separate them, and colons, which most ids contain, stay. `what` names it in the error.
 *
 * @throws ValidationError for one that is missing or that would lead elsewhere, such as `..`.
 */
export function segments(id: string, what: string): string {
  if (typeof id !== 'string' || id === '') throw new ValidationError(`${what} must be a text that is not empty`);
  return id
    .split('/')
    .map((part) => {
      if (part === '' || part === '.' || part === '..')
        throw new ValidationError(`${what} must not have an empty part, . or .. between its slashes`);
      return encodeURIComponent(part).replaceAll('%3A', ':');
    })
    .join('/');
}
