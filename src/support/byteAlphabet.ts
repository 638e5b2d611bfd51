/** Byte → its character in GPT-2's alphabet, in which printable characters stand for themselves and the rest for 256 and up. */
export const CHARACTER_OF_BYTE: readonly string[] = (() => {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
    return String.fromCharCode(isPrintable ? byte : next++);
  });
})();

/** Character code → byte + 1 in that alphabet, 0 for a character outside of it. */
export const BYTE_OF_CHARACTER: Uint16Array = (() => {
  const table = new Uint16Array(324);
  CHARACTER_OF_BYTE.forEach((character, byte) => (table[character.charCodeAt(0)] = byte + 1));
  return table;
})();
