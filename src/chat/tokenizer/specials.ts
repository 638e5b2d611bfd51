import { TokenizerError } from './TokenizerError.js';

/** A run of text, or the id of a special token. */
export type Section = string | number;

/** Splits text at special-token strings: the leftmost one first, the longest of those that start there. */
export function specialSplitter(specials: ReadonlyMap<string, number>): (text: string) => Section[] {
  const contents = [...specials.keys()].filter((content) => content !== '').sort((a, b) => b.length - a.length);
  if (contents.length === 0) return (text) => (text === '' ? [] : [text]);
  const escaped = contents.map((content) => content.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const pattern = new RegExp(`(${escaped.join('|')})`, 'u');
  return (text) =>
    text
      .split(pattern)
      .filter((section) => section !== '')
      .map((section) => specials.get(section) ?? section);
}

/** Encodes trusted text: special-token strings by their ids, what is between them with `encode`. */
export function encodeSections(sections: readonly Section[], encode: (text: string) => Int32Array): Int32Array {
  const runs = sections.map((section) => (typeof section === 'number' ? Int32Array.of(section) : encode(section)));
  const tokens = new Int32Array(runs.reduce((sum, run) => sum + run.length, 0));
  let at = 0;
  for (const run of runs) {
    tokens.set(run, at);
    at += run.length;
  }
  return tokens;
}

/** Id of a special token. @throws TokenizerError naming the tokenizer when it has no such token. */
export function specialId(specials: ReadonlyMap<string, number>, special: string, tokenizer: string): number {
  const id = specials.get(special);
  if (id === undefined) throw new TokenizerError(`${tokenizer} has no special token ${JSON.stringify(special)}`);
  return id;
}
