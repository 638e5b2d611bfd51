import { plainLine } from '../../support/plainText.js';

const MOST_MISTAKES = 5;
const SAID_UNDER = ['detail', 'message', 'error'] as const;

/**
 * What a server said, in one line: the body's `detail`, `message` or `error` (or the `message` in that), FastAPI's list of mistakes, or plain text.
 * It never throws, whatever the body is: a refusal that cannot be read is still a refusal.
 */
export function serverText(body: unknown): string {
  try {
    return plainLine(said(isRecord(body) ? firstOf(body) : body));
  } catch {
    return 'an error that cannot be shown';
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

const firstOf = (body: Readonly<Record<string, unknown>>): unknown => {
  const key = SAID_UNDER.find((name) => body[name] !== undefined && body[name] !== null);
  return key === undefined ? undefined : body[key];
};

function said(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === undefined || value === null) return '';
  if (!Array.isArray(value))
    return isRecord(value) && typeof value['message'] === 'string' ? value['message'] : asJson(value);
  const mistakes = value.slice(0, MOST_MISTAKES).map(fastApiMistake).join('; ');
  return value.length > MOST_MISTAKES ? `${mistakes}; and ${value.length - MOST_MISTAKES} more` : mistakes;
}

function fastApiMistake(entry: unknown): string {
  const { loc, msg } = (isRecord(entry) ? entry : {}) as { loc?: unknown; msg?: unknown };
  if (typeof msg !== 'string') return asJson(entry);
  const where = Array.isArray(loc) ? loc.map((part) => (typeof part === 'string' ? part : asJson(part))).join('.') : '';
  return `${where}: ${msg}`;
}

/** Not String(): an object from elsewhere may have a `toString` that is not a function. */
function asJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    return '[nested too deeply to show]';
  }
}
