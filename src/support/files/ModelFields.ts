/** Settings of a model, read one by one: a value that is missing or unsupported is an error that names its field. */
export class ModelFields {
  constructor(
    /** The file they are from. */
    readonly path: string,
    private readonly valueOf: (field: string) => unknown,
  ) {}

  get(field: string): unknown {
    return this.valueOf(field) ?? undefined;
  }

  /** A whole number above zero. */
  count(field: string, fallback?: number): number {
    const value = this.get(field) ?? fallback;
    if (!Number.isSafeInteger(value) || (value as number) <= 0) throw this.wrong(field, 'a whole number above 0');
    return value as number;
  }

  positive(field: string, fallback?: number): number {
    const value = this.get(field) ?? fallback;
    if (typeof value !== 'number' || !(value > 0) || value === Infinity) throw this.wrong(field, 'a number above 0');
    return value;
  }

  /** Refuses a setting that changes what the model computes in a way that is not known here. */
  refuse(field: string, isSupported: (value: unknown) => boolean): void {
    const value = this.get(field);
    if (value !== undefined && !isSupported(value)) throw this.wrong(field, undefined);
  }

  wrong(field: string, expected: string | undefined): Error {
    const value = JSON.stringify(this.get(field)) ?? 'missing';
    const said = value.length > 100 ? `${value.slice(0, 100)}…` : value;
    return new Error(
      `${this.path}: ${field} is ${said}, ${expected === undefined ? 'which is not supported here' : `not ${expected}`}`,
    );
  }
}

/** The architectures that are known here, by `model_type` and by GGUF's `general.architecture` alike. */
export const ARCHITECTURES = ['llama', 'qwen2', 'qwen3'] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

/** @throws Error naming the field */
export function architectureOf(fields: ModelFields, field: string): Architecture {
  const known = ARCHITECTURES.find((name) => name === fields.get(field));
  if (known === undefined) throw fields.wrong(field, `one of ${ARCHITECTURES.join(', ')}`);
  return known;
}
