/** Controls steer a terminal, and direction marks change what a reader sees; tabs and line breaks do neither. */
const STEERING = /(?![\t\n\r])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** Text from elsewhere without anything that could steer a terminal. Lines stay lines. */
export const plainText = (text: string): string => text.replace(STEERING, ' ');

/** The same in one line, cut after `longest` characters. */
export function plainLine(text: string, longest = 500): string {
  // Cut before it is searched: what comes from elsewhere may be as long as it likes.
  const line = plainText(text.slice(0, 4 * longest))
    .replace(/\s+/g, ' ')
    .trim();
  return line.length > longest || text.length > 4 * longest ? `${line.slice(0, longest)}…` : line;
}
