import type { Tokenizer } from '../tokenizer/Tokenizer.js';

/**
 * The tokens of a row that count for bits per byte: those of a weight above 0 that are not special. Gives their places, and the bytes of
 * the text of each run of them.
 */
export function countedText(
  targets: ArrayLike<number>,
  weights: ArrayLike<number>,
  tokenizer: Tokenizer,
): { readonly places: readonly number[]; readonly bytes: number } {
  const specials = specialTokens(tokenizer);
  const places: number[] = [];
  let bytes = 0;
  let run: number[] = [];
  const endRun = (): void => {
    if (run.length > 0) bytes += Buffer.byteLength(tokenizer.decode(run));
    run = [];
  };
  for (let place = 0; place < targets.length; place++) {
    if (weights[place]! > 0 && !specials.has(targets[place]!)) {
      places.push(place);
      run.push(targets[place]!);
    } else endRun();
  }
  endRun();
  return { places, bytes };
}

const known = new WeakMap<Tokenizer, ReadonlySet<number>>();

/** Tokens that are left out when special ones are: not every added token is special, `<think>` often is not. */
function specialTokens(tokenizer: Tokenizer): ReadonlySet<number> {
  const found = known.get(tokenizer);
  if (found !== undefined) return found;
  const specials = new Set(
    [...tokenizer.specialTokens.values()].filter(
      (token) => tokenizer.decode([token], { skipSpecialTokens: true }) === '',
    ),
  );
  known.set(tokenizer, specials);
  return specials;
}
