import { TokenizerError } from '../TokenizerError.js';

/** What this library uses of an instance of the `tiktoken` package: the Rust implementation, compiled to WebAssembly. */
export interface TiktokenEngine {
  encode_ordinary(text: string): Uint32Array;
}

type EngineClass = new (ranks: string, specials: Record<string, number>, pattern: string) => TiktokenEngine;

/** A package's encoding as it is published. */
export interface PackagedEncoding {
  readonly bpe_ranks: string;
  readonly pat_str: string;
}

const install = (id: string, cause: unknown): TokenizerError =>
  new TokenizerError(
    `the tokenizer of ${id} needs the package tiktoken, which is not installed: npm install tiktoken`,
    { cause },
  );

/** Loads the optional package. @throws TokenizerError that says how to install it. */
export async function loadEngine(id: string): Promise<(ranks: string, pattern: string) => TiktokenEngine> {
  let Engine: EngineClass;
  try {
    ({ Tiktoken: Engine } = (await import('tiktoken/lite')) as { Tiktoken: EngineClass });
  } catch (cause) {
    throw install(id, cause);
  }
  return (ranks, pattern) => {
    try {
      return new Engine(ranks, {}, pattern);
    } catch (cause) {
      throw new TokenizerError(`tiktoken cannot read the ranks of ${id}`, { cause });
    }
  };
}

/** o200k_base as the package brings it. @throws TokenizerError that says how to install it. */
export async function loadO200kBase(id: string): Promise<PackagedEncoding> {
  try {
    const { default: encoding } = (await import('tiktoken/encoders/o200k_base')) as unknown as {
      default: PackagedEncoding;
    };
    return encoding;
  } catch (cause) {
    throw install(id, cause);
  }
}
