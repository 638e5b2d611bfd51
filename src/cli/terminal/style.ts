import type { Output } from '../context.js';

const CODES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [96, 39],
} as const;

export type Style = Readonly<Record<keyof typeof CODES, (text: string) => string>>;

/** Colours for a terminal; plain text elsewhere, and where `NO_COLOR` is set or the terminal is a dumb one. */
export function styleFor(
  output: Output,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Style {
  const colours = output.isTTY === true && (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb';
  const paint = ([on, off]: readonly [number, number]) =>
    colours ? (text: string) => `\u001b[${on}m${text}\u001b[${off}m` : (text: string) => text;
  return Object.fromEntries(Object.entries(CODES).map(([name, codes]) => [name, paint(codes)])) as unknown as Style;
}
