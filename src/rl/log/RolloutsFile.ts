import { statSync } from 'node:fs';
import { JsonlFile } from '../../support/files/jsonlFile.js';
import type { ScoredGroup } from '../learning/advantages.js';
import type { RlStep } from '../learning/rlStep.js';
import { groupRecords } from './rolloutRecords.js';

/** The file of all rollouts: each group once, in order, and where in the file the groups of each step end. */
export class RolloutsFile {
  readonly #file: JsonlFile;
  readonly #written = new WeakSet<ScoredGroup>();
  /** By the index of a step: where its groups begin. Holds the steps in flight. */
  readonly #starts = new Map<number, number>();
  /** The newest batch: the order of its first group, and where that begins. */
  #batch: { readonly order: number; readonly start: number } | undefined;
  #iteration = -1;
  #groups = 0;
  #last: number | undefined;

  constructor(
    path: string,
    private readonly decode: ((tokens: Int32Array) => string) | undefined,
  ) {
    this.#file = new JsonlFile(path);
  }

  add(group: ScoredGroup, iteration: number, beginsBatch = false): void {
    if (this.#written.has(group)) return;
    this.#written.add(group);
    if (beginsBatch) this.#batch = { order: group.order, start: this.#size };
    if (iteration !== this.#iteration) {
      this.#iteration = iteration;
      this.#groups = 0;
      this.#starts.set(iteration, this.#size);
    }
    const place = { iteration, groupIndex: this.#groups++ };
    for (const record of groupRecords(group, place, this.decode)) this.#file.append(record);
  }

  /** Where the groups of a step end that is done, in bytes; writes those that were not added as they came. */
  endOf({ index, groups, resume }: RlStep): number {
    for (const group of groups) this.add(group, index);
    const isRepeated = index === this.#last;
    this.#last = index;
    for (const known of this.#starts.keys()) if (known <= index) this.#starts.delete(known);
    if (!isRepeated) return this.#starts.get(index + 1) ?? this.#size;
    // The last step comes again at the end: the groups after it are done with, too, but for those that a resumed run takes again.
    const isLeft = this.#batch !== undefined && resume !== undefined && this.#batch.order >= resume.next;
    return isLeft ? this.#batch!.start : this.#size;
  }

  sync(): void {
    this.#file.sync();
  }

  close(): void {
    this.#file.close();
  }

  get #size(): number {
    return statSync(this.#file.path).size;
  }
}
