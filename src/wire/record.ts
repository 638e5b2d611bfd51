import { type Either, isLeft, left, right } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import { plainLine } from '../support/plainText.js';
import { ValidationError } from './tinkerError.js';

/** `learning_rate` → `learningRate`, in types. */
export type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S;

export interface Optional<C extends t.Mixed> {
  readonly kind: 'optional';
  readonly codec: C;
}
export interface Defaulted<C extends t.Mixed> {
  readonly kind: 'defaulted';
  readonly codec: C;
  readonly value: t.TypeOf<C>;
}
export type Field = t.Mixed | Optional<t.Mixed> | Defaulted<t.Mixed>;
export type Fields = Readonly<Record<string, Field>>;

type CodecOf<F> = F extends Optional<infer C> | Defaulted<infer C> ? C : F extends t.Mixed ? F : never;
type Value<F> = t.TypeOf<CodecOf<F>>;
/** What a nested record accepts when it is being built: its own input, where it has one. */
type InputValue<F> = CodecOf<F> extends Preparable<infer I> ? I : Value<F>;
type OptionalKeys<F extends Fields> = { [K in keyof F]: F[K] extends Optional<t.Mixed> ? K : never }[keyof F];
type DefaultedKeys<F extends Fields> = { [K in keyof F]: F[K] extends Defaulted<t.Mixed> ? K : never }[keyof F];
type Flat<T> = { [K in keyof T]: T[K] };

/** The record after decoding: camelCase, defaults filled in. */
export type Decoded<F extends Fields> = Flat<
  { readonly [K in Exclude<keyof F & string, OptionalKeys<F>> as Camel<K>]: Value<F[K]> } & {
    readonly [K in OptionalKeys<F> & string as Camel<K>]?: Value<F[K]>;
  }
>;
/** The record as a caller writes it: camelCase, fields with a default may be left out. */
export type Input<F extends Fields> = Flat<
  { readonly [K in Exclude<keyof F & string, OptionalKeys<F> | DefaultedKeys<F>> as Camel<K>]: InputValue<F[K]> } & {
    readonly [K in (OptionalKeys<F> | DefaultedKeys<F>) & string as Camel<K>]?: InputValue<F[K]> | undefined;
  }
>;
export type Json = Record<string, unknown>;

export interface Preparable<I> {
  prepare(input: I, context?: t.Context): Either<t.Errors, unknown>;
}

interface Spec {
  readonly wireKey: string;
  readonly key: string;
  readonly codec: t.Mixed;
  readonly required: boolean;
  readonly fallback: unknown;
  /** Neither a record nor made of any. */
  readonly leaf: boolean;
}

function specOf(wireKey: string, field: Field): Spec {
  const wrapped = 'kind' in field;
  const codec = wrapped ? field.codec : field;
  return {
    wireKey,
    key: camel(wireKey),
    codec,
    leaf: !isCompound(codec),
    required: !wrapped,
    fallback: wrapped && field.kind === 'defaulted' ? (field.value as unknown) : undefined,
  };
}

export const optional = <C extends t.Mixed>(codec: C): Optional<C> => ({ kind: 'optional', codec });
export const withDefault = <C extends t.Mixed>(codec: C, value: t.TypeOf<C>): Defaulted<C> => ({
  kind: 'defaulted',
  codec,
  value,
});

function camel(wireKey: string): string {
  return wireKey.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * An object whose keys are snake_case on the wire and camelCase in this library.
 *
 * `decode` reads the wire form, `encode` writes it, `prepare` checks a value that a caller wrote (camelCase, defaults
 * may be absent) and gives its wire form or every mistake in it, each with its path.
 */
export class RecordType<F extends Fields> extends t.Type<Decoded<F>, Json> implements Preparable<Input<F>> {
  readonly specs: readonly Spec[];
  readonly #wireKeys: ReadonlySet<string>;
  readonly #keys: ReadonlySet<string>;

  constructor(
    name: string,
    fields: F,
    readonly unknownKeys: 'refuse' | 'drop',
  ) {
    super(
      name,
      (u): u is Decoded<F> => this.#isDecoded(u),
      (u, context) => this.#validate(u, context),
      (a) => this.#encode(a),
    );
    this.specs = Object.entries(fields).map(([wireKey, field]) => specOf(wireKey, field));
    this.#wireKeys = new Set(Object.keys(fields));
    this.#keys = new Set(this.specs.map(({ key }) => key));
  }

  prepare(input: Input<F>, context: t.Context = [{ key: this.name, type: this }]): Either<t.Errors, Json> {
    const given: unknown = input;
    if (!isObject(given)) return t.failure(given, context);
    const errors: t.Errors = [];
    for (const key of Object.keys(given)) {
      if (!this.#keys.has(key)) errors.push(unknownKey(key, context));
    }
    const output: Json = {};
    for (const { key, wireKey, codec, required, fallback, leaf } of this.specs) {
      const value = given[key] === undefined ? fallback : given[key];
      if (value === undefined) {
        if (required) errors.push({ value, context: t.appendContext(context, key, codec) });
        continue;
      }
      // The usual case first: most fields are plain and right, and a context for each would cost more than the check.
      if (leaf && codec.is(value)) {
        output[wireKey] = codec.encode(value);
        continue;
      }
      const prepared = prepareWith(codec, value, t.appendContext(context, key, codec));
      if (isLeft(prepared)) pushAll(errors, prepared.left);
      else output[wireKey] = prepared.right;
    }
    return errors.length > 0 ? left(errors) : right(output);
  }

  /** Whether a value that a caller wrote has no key that this record does not know. */
  hasOnlyKnownKeys(input: object): boolean {
    return Object.keys(input).every((key) => this.#keys.has(key));
  }

  #isDecoded(u: unknown): boolean {
    return (
      isObject(u) &&
      this.specs.every(({ key, codec, required, fallback }) =>
        u[key] === undefined ? !required && fallback === undefined : codec.is(u[key]),
      )
    );
  }

  #validate(u: unknown, context: t.Context): Either<t.Errors, Decoded<F>> {
    if (!isObject(u)) return t.failure(u, context);
    const errors: t.Errors = [];
    if (this.unknownKeys === 'refuse') {
      for (const key of Object.keys(u)) {
        if (!this.#wireKeys.has(key)) errors.push(unknownKey(key, context));
      }
    }
    const decoded: Json = {};
    for (const { key, wireKey, codec, required, fallback } of this.specs) {
      const value = u[wireKey];
      // Servers write null for absent; a codec that takes null itself (a nullable one) still sees it.
      if ((value === undefined || value === null) && !required) {
        if (fallback !== undefined) decoded[key] = fallback;
        continue;
      }
      // Fast path: valid values with identity encoding.
      if (codec.encode === t.identity && codec.is(value)) {
        decoded[key] = value;
        continue;
      }
      const validated = codec.validate(value, t.appendContext(context, wireKey, codec));
      if (isLeft(validated)) pushAll(errors, validated.left);
      else decoded[key] = validated.right;
    }
    return errors.length > 0 ? left(errors) : right(decoded as Decoded<F>);
  }

  #encode(a: Json): Json {
    const output: Json = {};
    for (const { key, wireKey, codec, fallback } of this.specs) {
      const value = a[key] === undefined ? fallback : a[key];
      if (value !== undefined) output[wireKey] = codec.encode(value);
    }
    return output;
  }
}

/** A message that goes to the server: an unknown key is an error on both sides. */
export const request = <F extends Fields>(name: string, fields: F): RecordType<F> =>
  new RecordType(name, fields, 'refuse');
/** A message that comes from the server: unknown keys are dropped. */
export const response = <F extends Fields>(name: string, fields: F): RecordType<F> =>
  new RecordType(name, fields, 'drop');

function isCompound(codec: t.Mixed): boolean {
  return (
    codec instanceof RecordType ||
    codec instanceof t.ArrayType ||
    codec instanceof t.ReadonlyArrayType ||
    codec instanceof t.UnionType
  );
}

/** Checks a camelCase value of any codec and gives its wire form; records nested in arrays, maps and unions too. */
export function prepareWith(codec: t.Mixed, value: unknown, context: t.Context): Either<t.Errors, unknown> {
  if (codec instanceof RecordType) return (codec as RecordType<Fields>).prepare(value as never, context);
  if (codec instanceof t.ArrayType || codec instanceof t.ReadonlyArrayType) {
    if (!Array.isArray(value)) return t.failure(value, context);
    const element = (codec as t.ArrayType<t.Mixed>).type;
    return collect(
      value.map((item, index) => prepareWith(element, item, t.appendContext(context, String(index), element))),
    );
  }
  if (codec instanceof t.UnionType) {
    for (const member of (codec as t.UnionType<t.Mixed[]>).types) {
      const prepared = prepareWith(member, value, context);
      if (!isLeft(prepared)) return prepared;
    }
    return t.failure(value, context);
  }
  return codec.is(value) ? right(codec.encode(value)) : t.failure(value, context);
}

/** One by one: as arguments of one call, some hundred thousand of them would not fit the stack. */
function pushAll(errors: t.Errors, more: t.Errors): void {
  for (const error of more) errors.push(error);
}

function collect(results: readonly Either<t.Errors, unknown>[]): Either<t.Errors, unknown[]> {
  const errors = results.flatMap((result) => (isLeft(result) ? result.left : []));
  return errors.length > 0 ? left(errors) : right(results.map((result) => (isLeft(result) ? undefined : result.right)));
}

const isObject = (u: unknown): u is Json => typeof u === 'object' && u !== null && !Array.isArray(u);

const unknownKey = (key: string, context: t.Context): t.ValidationError => ({
  value: undefined,
  context: t.appendContext(context, key, t.never),
  message: 'unknown key',
});

/**
 * Refuses an object of options with an unknown key: a misspelt option must not be dropped in silence. `where`
 * names the object.
 *
 * @throws ValidationError naming the key and those that there are.
 */
export function refuseUnknownKeys(options: object, known: ReadonlySet<string>, where: string): void {
  for (const key of Object.keys(options)) {
    if (known.has(key)) continue;
    throw new ValidationError(`${where}: unknown key ${plainLine(key, 100)}; expected ${[...known].join(', ')}`);
  }
}

/** One line per mistake: where and what was expected. Never the value, which may be a secret or a megabyte. */
export function describeErrors(errors: t.Errors): string {
  const lines = errors.slice(0, MOST_DESCRIBED).map(({ context, message }) => {
    // A union's entry is followed by one for the member that was tried, which is no place in the value.
    const isMember = (index: number): boolean => context[index - 1]?.type instanceof t.UnionType;
    const path = context.filter(({ key }, index) => key !== '' && !isMember(index)).map(({ key }) => key);
    let last = context.length - 1;
    while (isMember(last)) last--;
    const said = message ?? `expected ${context[last]?.type.name ?? 'a value'}`;
    // Keys of an answer are foreign text as well.
    return path.length === 0 ? said : `${plainLine(path.join('.'))}: ${said}`;
  });
  const unique = [...new Set(lines)];
  const more = unique.length - 5 + Math.max(0, errors.length - MOST_DESCRIBED);
  return more > 0 ? `${unique.slice(0, 5).join('; ')}; and ${more} more` : unique.join('; ');
}
const MOST_DESCRIBED = 1000;

/** The wire form of a request that a caller wrote. @throws ValidationError naming every mistake and where it is. */
export function prepare<F extends Fields>(codec: RecordType<F>, input: Input<F>): Json {
  const prepared = codec.prepare(input);
  if (isLeft(prepared)) throw new ValidationError(describeErrors(prepared.left));
  return prepared.right;
}

/** The same object without its undefined fields, which a strict request would refuse. */
export function withoutUndefined<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const kept: Record<string, unknown> = {};
  for (const key in fields) if (fields[key] !== undefined) kept[key] = fields[key];
  return kept as never;
}
