import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { ClientConfig, DynamicConfig } from '../../src/wire/session.js';
import { readFixture, scenarios } from '../parity/support/fixture.js';
import { PublicApi } from '../parity/support/publicApi.js';
import { readRows, words, type Row } from '../parity/support/parityTable.js';

interface Entry {
  readonly section: string;
  readonly name: string;
  readonly names: readonly string[];
  readonly twin?: boolean;
  readonly default?: unknown;
}
interface Listing {
  readonly sdk: string;
  readonly entries: readonly Entry[];
}

/** Installing the SDK into a fresh checkout takes minutes. */
const INSTALL_TIMEOUT_MS = 600_000;
const SCRIPT = fileURLToPath(new URL('../parity/list_sdk.py', import.meta.url));

/** Names of releases that cannot be installed yet. */
const AFTER = 'After 0.36, from the reference, not run';

const key = ({ section, name }: { section: string; name: string }): string => `${section} ${name}`;
const camel = (name: string): string => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

let listing: Listing;
let rows: ReadonlyMap<string, Row>;
let announced: readonly Row[];

beforeAll(() => {
  const { stdout, stderr, status } = spawnSync('python3', [SCRIPT], {
    encoding: 'utf8',
    timeout: INSTALL_TIMEOUT_MS,
    maxBuffer: 2 ** 26,
  });
  if (status !== 0) throw new Error(`list_sdk.py failed:\n${stderr}`);
  listing = JSON.parse(stdout) as Listing;
  const all = readRows();
  announced = all.filter(({ section }) => section === AFTER);
  rows = new Map(all.filter(({ section }) => section !== AFTER).map((row) => [key(row), row]));
}, INSTALL_TIMEOUT_MS);

describe('docs/parity.md', () => {
  it('has a row for every public name of the SDK', () => {
    expect(listing.entries.length).toBeGreaterThan(250);
    expect(listing.entries.map(key).filter((name) => !rows.has(name))).toStrictEqual([]);
  });

  it('names every parameter, field and value of each', () => {
    const missing = listing.entries.flatMap((entry) => {
      const row = rows.get(key(entry));
      const names = entry.names.flatMap(words).filter((name) => !row?.names.includes(name));
      const twin = entry.twin && !row?.twin ? ['+ async'] : [];
      return [...names, ...twin].map((name) => `${key(entry)}: ${name}`);
    });
    expect(missing).toStrictEqual([]);
  });

  it('has no row for what the SDK does not have', () => {
    const entries = new Map(listing.entries.map((entry) => [key(entry), entry]));
    const surplus = [...rows].flatMap(([name, row]) => {
      const entry = entries.get(name);
      if (entry === undefined) return [name];
      return row.names.filter((part) => !entry.names.flatMap(words).includes(part)).map((part) => `${name}: ${part}`);
    });
    expect(surplus).toStrictEqual([]);
  });

  it('gives each parameter and field its camelCase name, or says in the remark what became of it', () => {
    const unexplained = [...rows.values(), ...announced].flatMap((row) => {
      const ours = row.ours.flatMap(words);
      const told = words(row.remark);
      return row.names
        .filter((name) => !ours.includes(camel(name)) && !ours.includes(name) && !told.includes(name))
        .map((name) => `${key(row)}: ${name}`);
    });
    expect(unexplained).toStrictEqual([]);
  });

  it('says why where there is nothing of ours', () => {
    const silent = [...rows.values()].filter((row) => row.ours.length === 0 && row.remark === '').map(key);
    expect(silent).toStrictEqual([]);
  });

  it('keeps apart only what the installed SDK does not have', () => {
    expect(announced.length).toBeGreaterThan(5);
    const installed = new Set(listing.entries.map(({ name }) => name));
    expect(announced.filter(({ name }) => installed.has(name)).map(({ name }) => name)).toStrictEqual([]);
  });

  it('names only what this library has', () => {
    const api = new PublicApi(['src/index.ts', 'src/wire/index.ts']);
    const problems = [...rows.values(), ...announced].flatMap((row) =>
      row.ours.flatMap((reference) => {
        const problem = api.problem(reference);
        return problem === undefined ? [] : [`line ${row.line}: ${problem}`];
      }),
    );
    expect(problems).toStrictEqual([]);
  }, 120_000);
});

describe('flags of the service', () => {
  for (const codec of [ClientConfig, DynamicConfig]) {
    it(`have the SDK’s defaults: ${codec.name}`, () => {
      const flags = codec.decode({});
      if (flags._tag === 'Left') throw new Error('no defaults');
      const ours: Readonly<Record<string, unknown>> = flags.right;
      const theirs = new Map(listing.entries.map((entry) => [camel(entry.name), entry.default]));
      for (const [name, value] of Object.entries(ours)) expect(value, name).toBe(theirs.get(name));
    });
  }
});

describe('the recordings', () => {
  it('are of the SDK that is installed', () => {
    expect([...new Set(scenarios().map((scenario) => readFixture(scenario).recorded.sdk))]).toStrictEqual([
      listing.sdk,
    ]);
  });
});
