import { GatewayError } from './GatewayError.js';

type Json = Readonly<Record<string, unknown>>;

/** What happens with a wish that cannot be granted: an error in strict mode, else a warning for the caller. */
export interface Leniency {
  readonly strict: boolean;
  readonly warnings: string[];
}

/** Longest list that is read: a body of 8 MiB could hold millions of entries. */
const MOST_ENTRIES = 8192;

/**
 * The fields of a request, each asked for by name. {@link Fields.done} refuses those nobody asked for, so that a
 * misspelt one is not silently left out.
 */
export class Fields {
  readonly #body: Json;
  readonly #known = new Set<string>();

  constructor(
    body: unknown,
    private readonly where = '',
    private readonly leniency: Leniency = { strict: true, warnings: [] },
  ) {
    if (typeof body !== 'object' || body === null || Array.isArray(body)) {
      throw new GatewayError(400, `${where === '' ? 'the body' : where} must be an object`, where);
    }
    this.#body = body as Json;
  }

  /** What was asked for and is left out, in the words of the warning header. */
  get warnings(): readonly string[] {
    return this.leniency.warnings;
  }

  /** The value as it is; null counts as absent, as clients send it for what was not set. */
  any(name: string): unknown {
    const value = this.#body[name] ?? undefined;
    if (value !== undefined) this.#known.add(name);
    return value;
  }

  text(name: string): string | undefined {
    return this.#typed(name, (value) => typeof value === 'string', 'a string') as string | undefined;
  }

  flag(name: string): boolean | undefined {
    return this.#typed(name, (value) => typeof value === 'boolean', 'true or false') as boolean | undefined;
  }

  number(name: string, least: number, most: number): number | undefined {
    const fits = (value: unknown) => typeof value === 'number' && value >= least && value <= most;
    return this.#typed(name, fits, `a number from ${least} to ${most}`) as number | undefined;
  }

  integer(name: string, least: number, most: number): number | undefined {
    const fits = (value: unknown) =>
      Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
    return this.#typed(name, fits, `an integer from ${least} to ${most}`) as number | undefined;
  }

  list(name: string): readonly unknown[] | undefined {
    const list = this.#typed(name, Array.isArray, 'a list') as readonly unknown[] | undefined;
    if (list !== undefined && list.length > MOST_ENTRIES)
      throw this.wrong(name, `has more than ${MOST_ENTRIES} entries`);
    return list;
  }

  /** The fields of every entry of a list. */
  objects(name: string): Fields[] {
    const path = this.path(name);
    return (this.list(name) ?? []).map((item, index) => this.inside(item, `${path}[${index}]`));
  }

  /** The fields of a value inside this one. */
  inside(value: unknown, where: string): Fields {
    return new Fields(value, where, this.leniency);
  }

  object(name: string): Fields | undefined {
    const value = this.any(name);
    return value === undefined ? undefined : this.inside(value, this.path(name));
  }

  /** A list of strings, or one. */
  texts(name: string, most: number): readonly string[] | undefined {
    const value = this.any(name);
    if (value === undefined) return undefined;
    const list: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (list.length > most || !list.every((item) => typeof item === 'string')) {
      throw this.wrong(name, `must be a string or a list of at most ${most} strings`);
    }
    return list;
  }

  /** Known, and without effect whatever it holds: it does not change what is answered. */
  ignore(...names: readonly string[]): void {
    for (const name of names) this.any(name);
  }

  /** Known only at the value that asks for nothing. */
  only(name: string, neutral: (value: unknown) => boolean): void {
    const value = this.any(name);
    if (value !== undefined && !neutral(value)) throw this.wrong(name, 'is not supported by this gateway');
  }

  /** Cannot be honoured, and the answer is of use without it: a warning, or an error in strict mode. */
  hint(name: string, neutral: (value: unknown) => boolean = () => false): void {
    const value = this.any(name);
    if (value !== undefined && !neutral(value)) this.unmet(name, 'is not supported by this gateway');
  }

  /** A wish that cannot be granted. @throws GatewayError in strict mode */
  unmet(name: string, why: string): void {
    if (this.leniency.strict) throw this.wrong(name, why);
    this.leniency.warnings.push(`${this.path(name)} ${why}`);
  }

  /** An integer that is cut to `most`, with a warning; in strict mode more is an error. */
  atMost(name: string, least: number, most: number): number | undefined {
    const value = this.integer(name, least, Number.MAX_SAFE_INTEGER);
    if (value === undefined || value <= most) return value;
    this.unmet(name, `must be at most ${most} here`);
    return most;
  }

  /** @throws GatewayError naming the first field that has a value and that nobody asked for */
  done(): void {
    for (const name in this.#body) {
      if (!this.#known.has(name) && this.#body[name] != null) {
        throw this.wrong(name, 'is not supported by this gateway');
      }
    }
  }

  path(name: string): string {
    return this.where === '' ? name : `${this.where}.${name}`;
  }

  wrong(name: string, why: string): GatewayError {
    const path = this.path(name);
    return new GatewayError(400, `${path} ${why}`, path);
  }

  #typed(name: string, fits: (value: unknown) => boolean, expected: string): unknown {
    const value = this.any(name);
    if (value === undefined || fits(value)) return value;
    throw this.wrong(name, `must be ${expected}`);
  }
}
