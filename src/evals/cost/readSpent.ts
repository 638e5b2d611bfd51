import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TokenCounts } from './trackCost.js';
import { parseJson } from '../../support/parseJson.js';

/** What was spent on a run within a while: a line of `cost.jsonl` in the folder of the run. */
export interface SpentLine extends TokenCounts {
  /** The session that spent it. */
  readonly sessionId: string;
  /** Its base model. */
  readonly model: string;
  /** When the while began. */
  readonly startedAtMs: number;
  /** When it ended. */
  readonly endedAtMs: number;
  /** In US dollars; undefined if the model has no price. */
  readonly usd?: number;
  /** The date of the prices. */
  readonly pricesAsOf: string;
}

/** What all processes of a run have spent: what `trackCost` takes as `before`. */
export interface Spent extends TokenCounts {
  /** In US dollars; undefined if no line has a price. */
  readonly usd: number | undefined;
  /** The lines of the log. */
  readonly lines: readonly SpentLine[];
  /** Places of lines that cannot be read, as `file:line`: a crash may cut one off. They are not counted. */
  readonly damaged: readonly string[];
}

/**
 * What a run has spent so far, by the log that `withCost` keeps in its folder. Zero if there is no log.
 *
 * ```ts
 * const cost$ = trackCost(service.events$, { model, before: readSpent('runs/first') });
 * ```
 */
export function readSpent(folder: string): Spent {
  const path = join(folder, 'cost.jsonl');
  const lines: SpentLine[] = [];
  const damaged: string[] = [];
  for (const [index, text] of (existsSync(path) ? readFileSync(path, 'utf8') : '').split('\n').entries()) {
    if (text === '') continue;
    const line = parse(text);
    if (line === undefined) damaged.push(`${path}:${index + 1}`);
    else lines.push(line);
  }
  const sum = (name: keyof TokenCounts) => lines.reduce((total, line) => total + line[name], 0);
  const priced = lines.flatMap(({ usd }) => usd ?? []);
  return {
    ...{ prompt: sum('prompt'), cached: sum('cached'), sampled: sum('sampled'), trained: sum('trained') },
    usd: priced.length === 0 ? undefined : priced.reduce((total, usd) => total + usd, 0),
    lines,
    damaged,
  };
}

function parse(text: string): SpentLine | undefined {
  const line = parseJson(text) as SpentLine | null | undefined;
  return [line?.prompt, line?.cached, line?.sampled, line?.trained].every(Number.isFinite) ? line! : undefined;
}
