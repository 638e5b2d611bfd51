import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readSpent, type SpentLine } from '../readSpent.js';
import type { Cost, TokenCounts } from '../trackCost.js';

/** Keeps the cost of a run in its folder: each line is what was spent since the line before. */
export class SpentLog {
  readonly #path: string;
  #logged: TokenCounts & { readonly usd: number | undefined };

  constructor(folder: string) {
    this.#path = join(folder, 'cost.jsonl');
    this.#logged = readSpent(folder);
    mkdirSync(folder, { recursive: true });
    // A line that a crash cut off must not swallow the next one.
    if (existsSync(this.#path) && !/(^|\n)$/.test(readFileSync(this.#path, 'utf8'))) appendFileSync(this.#path, '\n');
  }

  /** Adds a line for what `cost` is more than the log says, if it is. */
  add(cost: Cost, about: Pick<SpentLine, 'sessionId' | 'model' | 'startedAtMs' | 'endedAtMs'>): void {
    const { prompt, cached, sampled, trained, usd, pricesAsOf } = cost;
    const logged = this.#logged;
    const line: SpentLine = {
      ...about,
      ...{ prompt: prompt - logged.prompt, cached: cached - logged.cached },
      ...{ sampled: sampled - logged.sampled, trained: trained - logged.trained },
      ...(usd === undefined ? {} : { usd: usd - (logged.usd ?? 0) }),
      pricesAsOf,
    };
    if (line.prompt + line.sampled + line.trained <= 0) return;
    appendFileSync(this.#path, `${JSON.stringify(line)}\n`);
    this.#logged = cost;
  }
}
