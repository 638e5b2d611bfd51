import type { DashboardGroup } from './changes.js';

/** Of all groups together, in characters. */
const CHARACTERS_KEPT = 16_000_000;
const GROUPS_KEPT = 5000;

/** What a group takes of that: its text, and something for the rest. */
export const weightOfGroup = ({ tries }: DashboardGroup): number =>
  tries.reduce((sum, { parts }) => sum + parts.reduce((length, { text }) => length + text.length + 40, 200), 200);

/** The newest groups of all runs: one for each task of a run, so that what is logged again is not shown twice. */
export class Groups {
  readonly #byTask = new Map<string, DashboardGroup>();
  #weight = 0;
  /** Goes up with every change. */
  version = 0;

  /** How many groups are kept. */
  get length(): number {
    return this.#byTask.size;
  }

  /** Adds a group, replacing the one of the same task, and drops the oldest ones above the limits. */
  push(group: DashboardGroup): void {
    this.version++;
    const key = `${group.order} ${group.run}`;
    this.#remove(key);
    this.#byTask.set(key, group);
    this.#weight += weightOfGroup(group);
    for (const oldest of this.#byTask.keys()) {
      if (this.length <= 1 || (this.length <= GROUPS_KEPT && this.#weight <= CHARACTERS_KEPT)) break;
      this.#remove(oldest);
    }
  }

  /** A run starts from nothing. */
  forget(run: string): void {
    for (const [key, group] of this.#byTask) if (group.run === run) this.#remove(key);
  }

  /** Forgets everything. */
  clear(): void {
    this.version++;
    this.#byTask.clear();
    this.#weight = 0;
  }

  /** The oldest first. */
  toArray(): DashboardGroup[] {
    return [...this.#byTask.values()];
  }

  #remove(key: string): void {
    const group = this.#byTask.get(key);
    if (group === undefined) return;
    this.version++;
    this.#byTask.delete(key);
    this.#weight -= weightOfGroup(group);
  }
}
