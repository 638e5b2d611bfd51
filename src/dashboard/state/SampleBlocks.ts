import type { Change, DashboardSample } from './changes.js';
import { packSamples } from './packSamples.js';
import type { Ring } from './Ring.js';

type Samples = Extract<Change, { readonly kind: 'samples' }>;

const SAMPLES_A_BLOCK = 200;

/** Samples in packed blocks. A block that is full is made once, for all pages that will ever come. */
export class SampleBlocks {
  /** By the first sample of each: samples do not change, and blocks begin where their ids say. */
  readonly #full = new WeakMap<DashboardSample, Samples>();

  *changes(samples: readonly DashboardSample[]): Iterable<Samples> {
    for (let from = 0; from < samples.length;) {
      const first = samples[from]!;
      const place = blockOf(first);
      let to = from + 1;
      while (to < samples.length && to - from < SAMPLES_A_BLOCK && blockOf(samples[to]!) === place) to++;
      yield this.#block(first, samples.slice(from, to));
      from = to;
    }
  }

  /** Makes the block that the newest sample has made full, if it has. */
  prepare(samples: Ring<DashboardSample>): void {
    const { last, length } = samples;
    if (last === undefined || (last.id + 1) % SAMPLES_A_BLOCK !== 0 || length < SAMPLES_A_BLOCK) return;
    const block = Array.from({ length: SAMPLES_A_BLOCK }, (_, place) => samples.at(length - SAMPLES_A_BLOCK + place)!);
    if (block.every((sample) => blockOf(sample) === blockOf(last))) this.#block(block[0]!, block);
  }

  #block(first: DashboardSample, samples: readonly DashboardSample[]): Samples {
    const there = this.#full.get(first);
    if (there !== undefined && there.samples.facts.length === samples.length) return there;
    const made: Samples = { kind: 'samples', samples: packSamples(samples) };
    if (samples.length === SAMPLES_A_BLOCK) this.#full.set(first, made);
    return made;
  }
}

const blockOf = ({ id }: DashboardSample): number => Math.floor(id / SAMPLES_A_BLOCK);
