/**
 * The vocabulary of the embedded models: ids 0 to 255 are the bytes of UTF-8 text, eight special tokens stand above.
 * A conversation is, turn by turn, a marker, the bytes of the text and {@link SPECIAL}.end:
 *
 *     257 "Be brief." 256   258 "What is 2+2?" 256   259 "4" 256
 *
 * Text never encodes to a special token, so no message can forge a turn.
 */
export const SPECIAL = {
  /** Ends a turn or a text; it stops sampling by default. */
  end: 256,
  system: 257,
  user: 258,
  assistant: 259,
  tool: 260,
  /** Begins a text that is not a conversation. */
  begin: 261,
  reserved0: 262,
  reserved1: 263,
} as const;

export const VOCABULARY_SIZE = 264;
export const END_TOKEN: number = SPECIAL.end;

/** How a special token is written when tokens are shown to people. */
export const SPECIAL_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(SPECIAL).map(([name, id]) => [id, `<|${name}|>`]),
);

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

/** The UTF-8 bytes of a text as tokens. A lone surrogate becomes U+FFFD, as in every UTF-8 encoder. */
export function encodeText(text: string): Int32Array {
  return Int32Array.from(encoder.encode(text));
}

/**
 * The text of some tokens. Special tokens are left out, or written as `<|name|>` with `special`; bytes that are not
 * UTF-8 become U+FFFD.
 */
export function decodeTokens(tokens: ArrayLike<number>, options: { readonly special?: boolean } = {}): string {
  const parts: string[] = [];
  let bytes: number[] = [];
  const flush = () => {
    if (bytes.length > 0) parts.push(decoder.decode(Uint8Array.from(bytes)));
    bytes = [];
  };
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index]!;
    if (token >= 0 && token < 256) {
      bytes.push(token);
    } else if (options.special === true) {
      flush();
      parts.push(SPECIAL_NAMES.get(token) ?? `<|${token}|>`);
    }
  }
  flush();
  return parts.join('');
}

/** What sampling needs to know of a model's tokens. */
export interface TokenTable {
  /** Sampling stops at these unless a request says otherwise. */
  readonly endTokens: readonly number[];
  /** The bytes of a token, none for a special one; undefined if they are not known. */
  readonly bytesOf?: ((token: number) => Uint8Array) | undefined;
}

/** The tokens of the embedded models. */
export const BYTE_TOKENS: TokenTable = {
  endTokens: [END_TOKEN],
  bytesOf: (token) => (token < 256 ? Uint8Array.of(token) : new Uint8Array()),
};
