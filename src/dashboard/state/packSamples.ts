import type { DashboardSample, PackedSamples, SampleFacts } from './changes.js';
import { packColumn, unpackColumn } from './packColumn.js';

/** Three decimals of a logprob are more than anybody reads. */
const PER = 1000;
const NONE = { as: 'all', from: 0 } as const;

/** Samples in few strings and columns: a page that is sent ten thousand has no million small things to make of them. */
export function packSamples(samples: readonly DashboardSample[]): PackedSamples {
  const size = samples.reduce((sum, sample) => sum + sizeOf(sample), 0);
  const [cuts, counts, logprobs] = [new Float64Array(size), new Float64Array(size), new Float64Array(size)];
  const tokens: number[] = [];
  let at = 0;
  const facts = samples.map((sample): SampleFacts => {
    const { pieces, tokens: ids, logprobs: likely } = sample;
    for (let place = 0; place < pieces.length; place++, at++) {
      const id = ids[place] ?? [];
      cuts[at] = pieces[place]!.length;
      counts[at] = typeof id === 'number' ? 1 : id.length;
      logprobs[at] = likely?.[place] ?? NaN;
      if (typeof id === 'number') tokens.push(id);
      else tokens.push(...id);
    }
    return factsOf(sample, pieces.length, likely !== undefined);
  });
  const likely = packColumn(logprobs, PER);
  return {
    facts,
    cuts: packColumn(cuts) ?? NONE,
    tokens: packColumn(Float64Array.from(tokens)) ?? NONE,
    ...(counts.every((count) => count === 1) ? {} : { counts: packColumn(counts)! }),
    ...(likely === undefined ? {} : { logprobs: likely }),
  };
}

/** What is a sample's own, whichever way it came, but for its numbers. */
function factsOf(sample: DashboardSample, size: number, likely: boolean): SampleFacts {
  const { id, atMs, run, prompt, stopReason, reward, length } = sample;
  return {
    id,
    atMs,
    prompt,
    length,
    text: textOf(sample),
    size,
    ...(likely ? { likely } : {}),
    ...(run === undefined ? {} : { run }),
    ...(stopReason === undefined ? {} : { stopReason }),
    ...(reward === undefined ? {} : { reward }),
  };
}

/** The inverse of {@link packSamples}. Their pieces are made when they are looked at. */
export function unpackSamples(packed: PackedSamples): DashboardSample[] {
  const numbers = new Numbers(packed);
  let start = 0;
  return packed.facts.map((facts) => {
    const sample = new LateSample(facts, numbers, start);
    start += facts.size;
    return sample;
  });
}

/** How many pieces a sample has, and their text: known of a sample that came packed without unpacking it. */
export const sizeOf = (sample: DashboardSample): number =>
  sample instanceof LateSample ? sample.size : sample.pieces.length;
export const textOf = (sample: DashboardSample): string =>
  sample instanceof LateSample ? sample.text : sample.pieces.join('');

/** The columns of many samples, unpacked when one of them is first looked at. */
class Numbers {
  readonly #packed: PackedSamples;
  readonly #size: number;
  #columns: Record<'cuts' | 'counts' | 'starts' | 'tokens' | 'logprobs', Float64Array> | undefined;

  constructor(packed: PackedSamples) {
    this.#packed = packed;
    this.#size = packed.facts.reduce((sum, { size }) => sum + size, 0);
  }

  get columns() {
    return (this.#columns ??= this.#unpack());
  }

  #unpack() {
    const { cuts, tokens, counts = { as: 'all', from: 1 }, logprobs } = this.#packed;
    const size = this.#size;
    const many = unpackColumn(counts, size);
    const starts = new Float64Array(size + 1);
    for (let piece = 0; piece < size; piece++) starts[piece + 1] = starts[piece]! + many[piece]!;
    return {
      cuts: unpackColumn(cuts, size),
      counts: many,
      starts,
      tokens: unpackColumn(tokens, starts[size]!),
      logprobs: logprobs === undefined ? new Float64Array(size).fill(NaN) : unpackColumn(logprobs, size),
    };
  }
}

class LateSample implements DashboardSample {
  readonly id: number;
  readonly atMs: number;
  declare readonly run?: string;
  declare readonly stopReason?: string;
  declare readonly reward?: number;
  readonly prompt: string;
  readonly length: number;
  readonly text: string;
  readonly size: number;
  readonly #likely: boolean;
  readonly #numbers: Numbers;
  readonly #start: number;

  constructor({ likely = false, ...facts }: SampleFacts, numbers: Numbers, start: number) {
    this.id = facts.id;
    this.atMs = facts.atMs;
    this.prompt = facts.prompt;
    this.length = facts.length;
    this.text = facts.text;
    this.size = facts.size;
    if (facts.run !== undefined) this.run = facts.run;
    if (facts.stopReason !== undefined) this.stopReason = facts.stopReason;
    if (facts.reward !== undefined) this.reward = facts.reward;
    this.#likely = likely;
    this.#numbers = numbers;
    this.#start = start;
  }

  get pieces(): string[] {
    let at = 0;
    return Array.from(this.#part('cuts'), (length) => this.text.slice(at, (at += length)));
  }

  get tokens(): (number | number[])[] {
    const { starts, tokens } = this.#numbers.columns;
    return Array.from(this.#part('counts'), (count, place) => {
      const from = starts[this.#start + place]!;
      return count === 1 ? tokens[from]! : Array.from(tokens.subarray(from, from + count));
    });
  }

  get logprobs(): (number | null)[] | undefined {
    if (!this.#likely) return undefined;
    return Array.from(this.#part('logprobs'), (logprob) => (Number.isNaN(logprob) ? null : logprob));
  }

  #part(name: 'cuts' | 'counts' | 'logprobs'): Float64Array {
    return this.#numbers.columns[name].subarray(this.#start, this.#start + this.size);
  }
}
