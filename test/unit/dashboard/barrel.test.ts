import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const source = new URL('../../../src/dashboard/', import.meta.url);

/** The files that run when one is imported, and the packages they take: what only types are taken from is not run. */
function reached(file: URL, seen = new Map<string, string[]>()): Map<string, string[]> {
  if (seen.has(file.href)) return seen;
  const code = readFileSync(file, 'utf8');
  const targets = [...code.matchAll(/^(?:import|export) (?!type )[^;]*?from '([^']+)';/gm)].map(
    ([, target]) => target!,
  );
  seen.set(
    file.href,
    targets.filter((target) => !target.startsWith('.')),
  );
  for (const target of targets.filter((each) => each.startsWith('.'))) {
    reached(new URL(target.replace(/\.js$/, '.ts'), file), seen);
  }
  return seen;
}

describe('the names of the dashboard', () => {
  it('are those a browser can have, and the server', async () => {
    const [all, client] = await Promise.all([
      import('../../../src/dashboard/index.js'),
      import('../../../src/dashboard/client.js'),
    ]);
    expect(Object.keys(all).sort()).toStrictEqual([...Object.keys(client), 'serveDashboard'].sort());
    expect(Object.keys(client)).toEqual(expect.arrayContaining(['fromDashboard', 'foldDashboard', 'DashboardState']));
  });

  it('run in a browser: nothing behind them needs Node', () => {
    const files = reached(new URL('client.ts', source));
    expect(files.size).toBeGreaterThan(10);
    const packages = [...new Set([...files.values()].flat())];
    expect(packages).toStrictEqual(['rxjs']);
  });
});
