import { TokenizerError } from '../TokenizerError.js';

/** Beyond any vocabulary: the time to walk through the ranks goes with the highest of them. */
const MOST_RANKS = 2 ** 22;

/**
 * Reads a tiktoken rank file (a base64 token and its rank on each line) into the form that the `tiktoken` package takes: lines of
 * `! firstRank token token …`, tokens in the order of their ranks.
 *
 * @throws TokenizerError naming the file and the first line that is not such a pair
 */
export function readRankFile(text: string, file: string): string {
  const tokens: string[] = [];
  text.split('\n').forEach((line, index) => {
    if (line.trim() === '') return;
    const [, token, rank] = /^([A-Za-z0-9+/]+=*) (\d+)\r?$/.exec(line) ?? [];
    if (token === undefined || rank === undefined) {
      throw new TokenizerError(`${file}: line ${index + 1} is not a base64 token and its rank`);
    }
    if (Number(rank) >= MOST_RANKS) throw new TokenizerError(`${file}: line ${index + 1} has the rank ${rank}`);
    tokens[Number(rank)] = token;
  });
  return joinRanks(tokens);
}

function joinRanks(tokens: readonly (string | undefined)[]): string {
  const lines: string[][] = [];
  let previous = -2;
  tokens.forEach((token, rank) => {
    if (token === undefined) return;
    if (rank !== previous + 1) lines.push(['!', String(rank)]);
    lines.at(-1)!.push(token);
    previous = rank;
  });
  return lines.map((line) => line.join(' ')).join('\n');
}

/**
 * Every byte needs a rank: the engine ends in a trap at the first text with one that has none.
 *
 * @throws TokenizerError naming the file and the first byte without a rank
 */
export function checkBytes(ranks: string, file: string): void {
  const tokens = new Set(rankedTokens(ranks));
  for (let byte = 0; byte < 256; byte++) {
    if (!tokens.has(Buffer.of(byte).toString('base64')))
      throw new TokenizerError(`${file} has no rank for the byte ${byte}: it is damaged, or not a rank file`);
  }
}

/** The base64 tokens of ranks in the package's form, by rank. */
export function rankedTokens(ranks: string): readonly (string | undefined)[] {
  const tokens: string[] = [];
  for (const line of ranks.split('\n')) {
    const [, first, ...rest] = line.split(' ');
    const offset = Number(first);
    rest.forEach((token, index) => (tokens[offset + index] = token));
  }
  return tokens;
}
