/** A number with a fraction or an exponent in its JSON text: Python keeps it a float, and writes it as one. */
export class PythonFloat {
  constructor(readonly value: number) {}
}

/** JSON as Python's `json.loads` sees it: objects keep their order, integers their digits, floats stay floats. */
export type Json = string | boolean | null | bigint | PythonFloat | readonly Json[] | ReadonlyMap<string, Json>;

export const isJsonObject = (value: Json | undefined): value is ReadonlyMap<string, Json> => value instanceof Map;

/** Options of {@link pythonJson}. */
export interface PythonJsonOptions {
  /** Escape everything beyond ASCII. Default `true`, as `json.dumps`. */
  readonly ensureAscii?: boolean;
  /** `", "` and `": "` (the default, as Python) or `","` and `":"`. */
  readonly compact?: boolean;
}

/** Writes a value as Python's `json.dumps` does: its spacing, its escapes, its floats. Takes plain values, and JSON parsed so that numbers keep how they were written. */
export function pythonJson(value: unknown, options: PythonJsonOptions = {}): string {
  const { ensureAscii = true, compact = false } = options;
  const comma = compact ? ',' : ', ';
  const colon = compact ? ':' : ': ';
  const write = (item: unknown): string => {
    if (item === null || item === undefined) return 'null';
    if (typeof item === 'string') return pythonString(item, ensureAscii);
    if (typeof item === 'boolean' || typeof item === 'bigint') return String(item);
    if (typeof item === 'number') return Number.isSafeInteger(item) ? String(item) : pythonFloat(item);
    if (item instanceof PythonFloat) return pythonFloat(item.value);
    if (Array.isArray(item)) return `[${item.map(write).join(comma)}]`;
    const entries: Iterable<[string, unknown]> =
      item instanceof Map ? (item as Map<string, unknown>) : Object.entries(item).filter(([, v]) => v !== undefined);
    const fields: string[] = [];
    for (const [key, field] of entries) fields.push(pythonString(key, ensureAscii) + colon + write(field));
    return `{${fields.join(comma)}}`;
  };
  return write(value);
}

/** The same value with the keys of every object sorted, as `json.dumps(sort_keys=True)` writes them. */
export function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null || value instanceof PythonFloat) return value;
  const entries: [string, unknown][] =
    value instanceof Map ? [...(value as Map<string, unknown>)] : Object.entries(value);
  entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return new Map(entries.map(([key, field]) => [key, sortKeys(field)]));
}

/** `repr` of a Python float. */
export function pythonFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity';
  const magnitude = Math.abs(value);
  if (magnitude !== 0 && (magnitude < 1e-4 || magnitude >= 1e16)) {
    const [mantissa, exponent = '+0'] = value.toExponential().split('e');
    const digits = exponent.slice(1).padStart(2, '0');
    return `${mantissa}e${exponent[0]}${digits}`;
  }
  const text = Object.is(value, -0) ? '-0' : String(value);
  return text.includes('.') ? text : `${text}.0`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\f': '\\f',
  '\b': '\\b',
};

function pythonString(text: string, ensureAscii: boolean): string {
  const pattern = ensureAscii ? /["\\]|[^ -~]/g : /["\\\u0000-\u001f]/g;
  const escaped = text.replace(pattern, (c) => ESCAPES[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return `"${escaped}"`;
}

const TOKEN = /[\s]*(?:([{}[\],:])|("(?:[^"\\]|\\.)*")|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null))/y;

/** Parses JSON without losing what JavaScript's own parser loses. Throws a `SyntaxError`. */
export function parseJson(text: string): Json {
  TOKEN.lastIndex = 0;
  const fail = (): never => {
    throw new SyntaxError(`unexpected text at character ${TOKEN.lastIndex || at}`);
  };
  let at = 0;
  let token: RegExpExecArray | null = null;
  const advance = (): void => {
    TOKEN.lastIndex = at;
    token = TOKEN.exec(text);
    if (token !== null) at = TOKEN.lastIndex;
  };
  const punctuation = (): string | undefined => token?.[1];
  const value = (): Json => {
    if (token === null) return fail();
    const [, mark, quoted, number, word] = token;
    if (quoted !== undefined) {
      // Python reads control characters in strings as errors, and so does JSON.parse.
      const parsed = JSON.parse(quoted) as string;
      advance();
      return parsed;
    }
    if (number !== undefined) {
      // JSON has no leading zeros; JSON.parse is the judge of that.
      const parsed = JSON.parse(number) as number;
      advance();
      return /[.eE]/.test(number) ? new PythonFloat(parsed) : BigInt(number);
    }
    if (word !== undefined) {
      advance();
      return word === 'null' ? null : word === 'true';
    }
    if (mark === '[') return list();
    if (mark === '{') return object();
    return fail();
  };
  const list = (): Json => {
    const items: Json[] = [];
    advance();
    if (punctuation() === ']') {
      advance();
      return items;
    }
    for (;;) {
      items.push(value());
      const mark = punctuation();
      if (mark !== ',' && mark !== ']') fail();
      advance();
      if (mark === ']') return items;
    }
  };
  const object = (): Json => {
    const fields = new Map<string, Json>();
    advance();
    if (punctuation() === '}') {
      advance();
      return fields;
    }
    for (;;) {
      const quoted = token?.[2];
      if (quoted === undefined) return fail();
      const key = JSON.parse(quoted) as string;
      advance();
      if (punctuation() !== ':') fail();
      advance();
      fields.set(key, value());
      const mark = punctuation();
      if (mark !== ',' && mark !== '}') fail();
      advance();
      if (mark === '}') return fields;
    }
  };
  advance();
  const parsed = value();
  if (token !== null || text.slice(at).trim() !== '') fail();
  return parsed;
}
