/** What a suite has counted, printed at its end: first the given counts, also where they are 0, then the others by name. */
export class Report {
  readonly #counts = new Map<string, number>();
  readonly #first: number;

  constructor(
    readonly suite: string,
    counts: readonly string[],
  ) {
    for (const name of counts) this.#counts.set(name, 0);
    this.#first = counts.length;
  }

  add(name: string, count: number): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + count);
  }

  get(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  print(): void {
    const entries = [...this.#counts];
    const others = entries.slice(this.#first).sort(([a], [b]) => (a < b ? -1 : 1));
    const width = Math.max(...entries.map(([name]) => name.length));
    const lines = [...entries.slice(0, this.#first), ...others].map(
      ([name, count]) => `  ${name.padEnd(width)}  ${String(count).padStart(9)}`,
    );
    process.stdout.write(`${this.suite}\n${lines.join('\n')}\n`);
  }
}
