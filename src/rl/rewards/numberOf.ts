/** What a reward may be, for messages. */
export const REWARDS = 'a finite number, true or false, or { reward, metrics }';

/**
 * A reward or score as a number: `true` is 1, `false` is 0. `what` names it, `accepted` says what it may be.
 *
 * @throws TypeError for anything else, RangeError for NaN and ±Infinity
 */
export function numberOf(value: unknown, what: string, accepted: string): number {
  if (typeof value === 'boolean') return Number(value);
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  const message = `${what} is ${described(value)}; it must be ${accepted}`;
  throw withoutFrames(typeof value === 'number' ? new RangeError(message) : new TypeError(message));
}

function described(value: unknown): string {
  if (value === undefined) return 'undefined (is a return missing?)';
  if (value === null || typeof value === 'number') return String(value);
  if (typeof value === 'string')
    return `the text ${JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)}`;
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return `an object with ${Object.keys(value).slice(0, 5).join(', ') || 'no fields'}`;
  return `a ${typeof value}`;
}

/** The frames of the stack are this library's own: they would be taken for the place of the mistake. */
function withoutFrames<E extends Error>(error: E): E {
  error.stack = `${error.name}: ${error.message}`;
  return error;
}
