import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { OPERATORS } from '../../marbles/findOperators.js';
import { root } from './snippets.js';

const names = [...OPERATORS].sort();

describe('marble pictures', () => {
  it('are what the script draws', async () => {
    const drawing = promisify(execFile)(process.execPath, ['--import', 'tsx', 'scripts/draw-marbles.mjs', '--check'], {
      cwd: root,
    });
    await expect(drawing).resolves.toMatchObject({ stderr: '' });
  });

  it('exist for every operator, and for nothing else', () => {
    const files = readdirSync(`${root}docs/marbles`).filter((file) => file.endsWith('.svg'));
    expect(files.sort()).toStrictEqual(names.map((name) => `${name}.svg`).sort());
  });

  it('stand in a section of their own in docs/operators.md', () => {
    const page = readFileSync(`${root}docs/operators.md`, 'utf8');
    const sections = page.split(/^### /m).slice(1);
    const pictured = sections.flatMap((section) => {
      const name = section.split('\n', 1)[0]!;
      return section.includes(`](marbles/${name}.svg)`) ? [name] : [];
    });
    expect(pictured.sort()).toStrictEqual(names);
  });
});
