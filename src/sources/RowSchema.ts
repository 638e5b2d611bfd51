import type { Decoder } from 'io-ts';

/** What a schema of zod, Valibot, ArkType and others has in common: https://standardschema.dev */
export interface StandardSchema<T> {
  /** The part that is the same for all of them. */
  readonly '~standard': {
    /** Checks a value. */
    readonly validate: (value: unknown) => StandardResult<T> | Promise<StandardResult<T>>;
  };
}

/** The checked value, or what is wrong with it. */
export type StandardResult<T> =
  | {
      /** The value. */
      readonly value: T;
      /** Undefined if the value is good. */
      readonly issues?: undefined;
    }
  | {
      /** Everything that is wrong. */
      readonly issues: readonly {
        /** What was expected. */
        readonly message: string;
        /** Where. */
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[];
    };

/**
 * How rows from outside are checked: a schema of zod or another library of https://standardschema.dev, a codec of io-ts, or a function that
 * returns the row or throws, such as `toPreference` and `toConversation`.
 */
export type RowSchema<T> = StandardSchema<T> | Decoder<unknown, T> | ((row: unknown) => T);
