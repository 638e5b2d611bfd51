import { BYTE_OF_CHARACTER } from '../../support/byteAlphabet.js';

const NOTHING = new Uint8Array();
const encoder = new TextEncoder();

interface TokenizerJson {
  readonly added_tokens?: readonly { readonly id: number; readonly content: string; readonly special: boolean }[];
  readonly model: { readonly vocab: Readonly<Record<string, number>> };
  readonly decoder?: object | null;
}

/** The bytes of each token of a tokenizer.json, by id; none for special ones. */
export function tokenBytes(tokenizerJson: string): readonly Uint8Array[] {
  const { added_tokens: added = [], model, decoder } = JSON.parse(tokenizerJson) as TokenizerJson;
  const isByteLevel = JSON.stringify(decoder ?? {}).includes('"ByteLevel"');
  const bytes: Uint8Array[] = [];
  for (const [token, id] of Object.entries(model.vocab))
    bytes[id] = isByteLevel ? fromAlphabet(token) : fromPiece(token);
  for (const { id, content, special } of added) bytes[id] = special ? NOTHING : encoder.encode(content);
  return Array.from(bytes, (one) => one ?? NOTHING);
}

function fromAlphabet(token: string): Uint8Array {
  const bytes = Uint8Array.from(token, (character) => (BYTE_OF_CHARACTER[character.charCodeAt(0)] ?? 0) - 1);
  // A character outside the alphabet means that the token is plain text.
  return [...token].every((character) => BYTE_OF_CHARACTER[character.charCodeAt(0)]) ? bytes : encoder.encode(token);
}

/** SentencePiece: `▁` is a space, `<0x0A>` a byte. */
function fromPiece(token: string): Uint8Array {
  const byte = /^<0x([0-9A-F]{2})>$/.exec(token)?.[1];
  return byte === undefined ? encoder.encode(token.replaceAll('▁', ' ')) : Uint8Array.of(Number.parseInt(byte, 16));
}
