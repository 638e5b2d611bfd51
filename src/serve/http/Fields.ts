import { GatewayError } from './GatewayError.js';

type Json = Readonly<Record<string, unknown>>;

/**
 * The fields of a request, each asked for by name. {@link Fields.done} refuses those nobody asked for, so that nothing
 * a caller wants is silently left out.
 */
export class Fields {
  readonly #body: Json;
  readonly #where: string;
  readonly #known = new Set<string>();

  constructor(body: unknown, where = '') {
    if (typeof body !== 'object' || body === null || Array.isArray(body)) {
      throw new GatewayError(400, `${where === '' ? 'the body' : where} must be an object`, where);
    }
    this.#body = body as Json;
    this.#where = where;
  }

  /** The value as it is; null counts as absent, as clients send it for what was not set. */
  any(name: string): unknown {
    this.#known.add(name);
    return this.#body[name] ?? undefined;
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
    return this.#typed(name, Array.isArray, 'a list') as readonly unknown[] | undefined;
  }

  object(name: string): Fields | undefined {
    const value = this.any(name);
    return value === undefined ? undefined : new Fields(value, this.path(name));
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
    for (const name of names) this.#known.add(name);
  }

  /** Known only at the value that asks for nothing. */
  only(name: string, neutral: (value: unknown) => boolean): void {
    const value = this.any(name);
    if (value !== undefined && !neutral(value)) throw this.wrong(name, 'is not supported by this gateway');
  }

  /** @throws GatewayError naming the first field that nobody asked for */
  done(): void {
    for (const name in this.#body) {
      if (!this.#known.has(name)) throw this.wrong(name, 'is not supported by this gateway');
    }
  }

  path(name: string): string {
    return this.#where === '' ? name : `${this.#where}.${name}`;
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
