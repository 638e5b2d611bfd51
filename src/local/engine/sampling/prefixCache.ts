import type { KvCache } from '../model/kvCache.js';
import type { LogitRow } from './logitRow.js';
import type { Sampler } from './sampler.js';

/** Floats that prompts may take which nobody samples from any more. */
const MAX_FLOATS = 1 << 24;

/** A prompt that was computed: its keys and values, and what comes first after it. */
export interface Prefix {
  readonly sampler: Sampler;
  readonly prompt: Int32Array;
  readonly cache: KvCache;
  readonly floats: number;
  readonly first: LogitRow;
  /** Requests that still start sequences from it. */
  users: number;
}

/** Prompts computed lately, so that those that begin alike are computed once. The ones used longest ago are dropped first. */
export class PrefixCache {
  readonly #prefixes = new Set<Prefix>();

  /** The prompt that shares the longest beginning with this one, and how many tokens that is. */
  find(sampler: Sampler, prompt: Int32Array): { readonly prefix: Prefix; readonly shared: number } | undefined {
    let best: { readonly prefix: Prefix; readonly shared: number } | undefined;
    for (const prefix of this.#prefixes) {
      if (prefix.sampler !== sampler) continue;
      const differs = prefix.prompt.findIndex((token, i) => token !== prompt[i]);
      const shared = differs < 0 ? prefix.prompt.length : differs;
      if (shared > (best?.shared ?? 0)) best = { prefix, shared };
    }
    return best;
  }

  /** Keeps a prompt that a request uses, until the request says {@link release}, and then for as long as there is room. */
  retain(prefix: Prefix): void {
    prefix.users++;
    this.#prefixes.delete(prefix);
    this.#prefixes.add(prefix);
    this.#trim();
  }

  release(prefix: Prefix): void {
    prefix.users--;
    this.#trim();
  }

  /** Drops the prompts of a sampler that is gone. */
  forget(sampler: Sampler): void {
    this.#trim(0, sampler);
  }

  #trim(limit = MAX_FLOATS, sampler?: Sampler): void {
    const idle = [...this.#prefixes].filter(({ users, sampler: of }) => users === 0 && (sampler ?? of) === of);
    let floats = idle.reduce((sum, prefix) => sum + prefix.floats, 0);
    for (const prefix of idle) {
      if (floats <= limit) return;
      floats -= prefix.floats;
      this.#prefixes.delete(prefix);
      prefix.cache.dispose();
    }
  }
}
