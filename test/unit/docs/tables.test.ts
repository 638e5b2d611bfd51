import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { LOSS_CONFIG_KEYS } from '../../../src/wire/training.js';
import { OPERATORS } from '../../marbles/findOperators.js';
import { root } from './snippets.js';

const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8');
const inCode = (page: string): Set<string> =>
  new Set(Array.from(read(page).matchAll(/`([^`\n]+)`/g), ([, code]) => code!));
const found = (path: string, pattern: RegExp): string[] =>
  Array.from(read(path).matchAll(pattern), ([, name]) => name!);

describe('tables of the guides', () => {
  it('README.md and docs/operators.md name every operator: the one in its table, the other in a section', () => {
    const [, table = ''] = /^\| operator \| what it does \|\n([^]*?)\n\n/m.exec(read('README.md')) ?? [];
    const named = new Set(Array.from(table.matchAll(/`([^`\n]+)`/g), ([, code]) => code!));
    const sections = new Set(found('docs/operators.md', /^### (\S+)$/gm));
    expect(OPERATORS.length).toBeGreaterThan(35);
    const operators = [...OPERATORS, 'rateOnPlateau'];
    expect(operators.filter((name) => !named.has(name))).toStrictEqual([]);
    expect([...operators, 'flow$'].filter((name) => !sections.has(name))).toStrictEqual([]);
  });

  it('docs/operators.md lists every section in the table at its top', () => {
    const page = read('docs/operators.md');
    const links = Array.from(page.split('<!-- snippet')[0]!.matchAll(/\[(\S+)\]\(#/g), ([, name]) => name!);
    expect(links.sort()).toStrictEqual(found('docs/operators.md', /^### (\S+)$/gm).sort());
  });

  it('docs/performance.md has what npm run bench measures first, and says how many that are', () => {
    const measured = found('bench/run.mjs', /from '\.\/(\w+)\.mjs'/g);
    expect(measured.length).toBeGreaterThan(8);
    const rows = found('docs/performance.md', /^\| `bench\/(\w+)\.mjs`/gm);
    expect(rows.slice(0, measured.length).sort()).toStrictEqual(measured.sort());
    expect(read('docs/performance.md')).toContain(`measures the first ${measured.length} rows`);
  });

  it('docs/events.md has every event', () => {
    const types = found('src/client/events.ts', /readonly type: '([a-z-]+)'/g);
    expect(types.length).toBeGreaterThan(15);
    const told = inCode('docs/events.md');
    expect(types.filter((type) => !told.has(type))).toStrictEqual([]);
  });

  it('docs/errors.md has every class and code', () => {
    const files = [
      'src/client/errors.ts',
      'src/wire/tinkerError.ts',
      'src/transport/auth.ts',
      'src/sources/SourceError.ts',
      'src/sources/fromServerSentEvents.ts',
      'src/chat/tokenizer/TokenizerError.ts',
    ];
    const classes = files.flatMap((file) => found(file, /export class (\w+Error) /g));
    const codes = files.flatMap((file) => found(file, /code(?:: string)? = '(\w+)'/g));
    expect(codes.length).toBeGreaterThan(20);
    const told = inCode('docs/errors.md');
    expect([...classes, ...codes].filter((name) => !told.has(name))).toStrictEqual([]);
  });

  it('docs/errors.md says of every code what it means and what to do', () => {
    const codes = found('src/wire/tinkerError.ts', /^ {2}\| '(\w+)'/gm).filter((code) => code !== 'status');
    expect(codes.length).toBeGreaterThan(25);
    const rows = read('docs/errors.md')
      .split('\n')
      .map((line) => line.split(' | '))
      .filter((cells) => cells.length === 4);
    const told = codes.filter((code) =>
      rows.some(([, names, means, action]) => names!.includes(`\`${code}\``) && means !== '' && action!.length > 10),
    );
    expect(told).toStrictEqual(codes);
  });

  it('docs/events.md has every report to the service', () => {
    const source = 'src/client/session/telemetryEvents.ts';
    const kinds = found(source, /'((?:SESSION|UNHANDLED)_[A-Z]+)'/g);
    const waits = Array.from(
      /WAITS[\s\S]*?new Set\(\[([^\]]+)\]/.exec(read(source))![1]!.matchAll(/'([a-z-]+)'/g),
      ([, name]) => name!,
    );
    const names = found(source, /generic\('([a-z_]+)'/g);
    expect([kinds.length, waits.length, names.length].every((count) => count > 0)).toBe(true);
    const told = inCode('docs/events.md');
    const reports = [...kinds, ...names, ...waits.map((wait) => `tinker-rx.${wait}`)];
    expect(reports.filter((name) => !told.has(name))).toStrictEqual([]);
  });

  it('docs/training-order.md has every key of every loss’s config, and Adam’s defaults', () => {
    const told = inCode('docs/training-order.md');
    const keys = Object.entries(LOSS_CONFIG_KEYS)
      .filter(([loss]) => loss !== 'custom')
      .flatMap(([loss, taken]) => [loss, ...taken]);
    expect(keys.filter((key) => !told.has(key))).toStrictEqual([]);
    expect(read('docs/training-order.md')).toMatch(/`beta2` is 0\.95.*`eps` is 1e-12/s);
  });
});
