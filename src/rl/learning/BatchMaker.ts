import type { ScoredGroup } from './advantages.js';
import { GroupTally } from './GroupTally.js';
import type { MaskedDatum } from './trajectoryData.js';

/** A group with the datums it gives, and their log probabilities under a reference where these are wanted. */
export interface PreparedGroup<T> {
  readonly group: ScoredGroup<T>;
  readonly data: readonly MaskedDatum[];
  readonly reference?: readonly Float32Array[];
  readonly splits: number;
}

/** What a batch was made of. */
export interface MadeBatch<T> {
  /** Groups since the batch before that was trained on, also those that taught nothing: of very many, the newest. */
  readonly groups: readonly ScoredGroup<T>[];
  /** What all of them were like. */
  readonly tally: GroupTally;
  readonly data: readonly MaskedDatum[];
  readonly splits: number;
  /** Of each part, the mean difference to the reference. */
  readonly kl: readonly number[];
  /** How many of its groups are not yet released to the pacer. */
  readonly unreleased: number;
  /** The order of the first group after it. */
  readonly next: number;
}

export interface BatchMakerOptions {
  readonly groupsPerBatch: number;
  readonly minibatches: number;
  readonly refill: boolean;
  /** Turns a part into what is trained on, and starts training on it. */
  readonly train: (part: readonly PreparedGroup<unknown>[]) => {
    readonly data: readonly MaskedDatum[];
    readonly kl?: number;
  };
  /** Called with the number of groups that are done because they teach nothing. */
  readonly release: (groups: number) => void;
  readonly skipped: (groups: number) => void;
}

/** How many batches of groups that teach nothing are kept for the next step. All of them are counted. */
const BATCHES_HELD = 8;

/** Makes batches of groups, in their order, and starts a part of a batch as soon as its groups are there. */
export class BatchMaker<T> {
  #groups: { readonly group: ScoredGroup<T>; readonly teaches: boolean }[] = [];
  #untaught = 0;
  #tally = new GroupTally();
  #part: PreparedGroup<T>[] = [];
  #data: MaskedDatum[] = [];
  #kl: number[] = [];
  #splits = 0;
  #counted = 0;
  #parts = 0;
  #unreleased = 0;
  #next = 0;
  #closed = 0;
  #isFresh = true;

  constructor(private readonly options: BatchMakerOptions) {}

  /** The order of the first group that has not been added. */
  get next(): number {
    return this.#next;
  }

  /** Whether the next group begins a batch. */
  get isFresh(): boolean {
    return this.#isFresh;
  }

  /** The order of the first group that no batch has, also none that taught nothing. */
  get closed(): number {
    return this.#closed;
  }

  /** What the groups were like that no batch counts: since the last batch, none taught anything. */
  get rest(): GroupTally | undefined {
    return this.#groups.length === 0 ? undefined : this.#tally;
  }

  /** The batch that this group fills, if it does. */
  add(prepared: PreparedGroup<T>): MadeBatch<T> | undefined {
    const { groupsPerBatch, minibatches, refill, release } = this.options;
    const { group } = prepared;
    const teaches = group.teaches && prepared.data.length > 0;
    this.#hold(group, teaches);
    this.#next = group.order + 1;
    this.#isFresh = false;
    this.#splits += prepared.splits;
    if (teaches) this.#part.push(prepared);
    else if (refill) {
      // It takes no place in the batch, so the next task may be taken at once.
      release(1);
      return undefined;
    }
    this.#counted++;
    this.#unreleased++;
    if (this.#counted >= Math.ceil((groupsPerBatch * (this.#parts + 1)) / minibatches)) {
      this.#parts++;
      this.#trainPart();
    }
    return this.#counted < groupsPerBatch ? undefined : this.#close();
  }

  /** What is left when no more groups come. */
  flush(): MadeBatch<T> | undefined {
    if (this.#counted === 0) return undefined;
    this.#trainPart();
    return this.#close();
  }

  #hold(group: ScoredGroup<T>, teaches: boolean): void {
    this.#tally.add(group);
    this.#groups.push({ group, teaches });
    if (teaches) return;
    this.#untaught++;
    if (this.#untaught <= BATCHES_HELD * this.options.groupsPerBatch) return;
    this.#untaught--;
    this.#groups.splice(
      this.#groups.findIndex((each) => !each.teaches),
      1,
    );
  }

  #trainPart(): void {
    if (this.#part.length === 0) return;
    const { data, kl } = this.options.train(this.#part);
    this.#part = [];
    for (const each of data) this.#data.push(each);
    if (kl !== undefined) this.#kl.push(kl);
  }

  #close(): MadeBatch<T> | undefined {
    const unreleased = this.#unreleased;
    this.#closed = this.#next;
    this.#isFresh = true;
    this.#counted = 0;
    this.#parts = 0;
    this.#unreleased = 0;
    if (this.#data.length === 0) {
      // Its groups stay with the next batch, so that they are seen and counted.
      this.options.skipped(unreleased);
      this.options.release(unreleased);
      return undefined;
    }
    const batch: MadeBatch<T> = {
      groups: this.#groups.map(({ group }) => group),
      tally: this.#tally,
      data: this.#data,
      splits: this.#splits,
      kl: this.#kl,
      unreleased,
      next: this.#next,
    };
    this.#groups = [];
    this.#untaught = 0;
    this.#tally = new GroupTally();
    this.#data = [];
    this.#kl = [];
    this.#splits = 0;
    return batch;
  }
}
