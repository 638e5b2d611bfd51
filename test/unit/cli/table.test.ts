import { afterEach, describe, expect, it, vi } from 'vitest';
import { styleFor } from '../../../src/cli/terminal/style.js';
import { renderProperties, renderTable } from '../../../src/cli/output/table.js';
import { oneLine, textWidth, wrap } from '../../../src/support/terminal/textWidth.js';

const plain = styleFor({ write: () => {} });
const RUNS = {
  title: '2 runs',
  columns: ['Run ID', 'Base Model', 'Last Update'],
  rows: [
    ['0123456789', 'Qwen/Qwen3-235B-A22B-Instruct', '2 hours ago'],
    ['abc', 'tinker-rx/tiny', 'just now'],
  ],
};
afterEach(() => vi.unstubAllEnvs());

describe('renderTable', () => {
  it('is as wide as its cells where there is room', () => {
    expect(renderTable(RUNS, { width: Infinity, style: plain })).toBe(
      [
        '2 runs',
        'Run ID      Base Model                     Last Update',
        '0123456789  Qwen/Qwen3-235B-A22B-Instruct  2 hours ago',
        'abc         tinker-rx/tiny                 just now',
        '',
      ].join('\n'),
    );
  });

  it('breaks cells but those of the first column to fit the terminal', () => {
    expect(renderTable(RUNS, { width: 40, style: plain })).toBe(
      [
        '2 runs',
        'Run ID      Base Model       Last Update',
        '0123456789  Qwen/Qwen3-      2 hours ago',
        '            235B-A22B-',
        '            Instruct',
        'abc         tinker-rx/tiny   just now',
        '',
      ].join('\n'),
    );
  });

  it.each([20, 28, 30, 40, 54, 80])('is never wider than a terminal of %d cells, or is made of blocks', (width) => {
    const lines = renderTable(RUNS, { width, style: plain }).split('\n');
    const blocks = lines.includes('Base Model   tinker-rx/tiny');
    expect(blocks).toBe(width < 30);
    if (!blocks) expect(Math.max(...lines.map(textWidth))).toBeLessThanOrEqual(width);
  });

  it('keeps values whole in blocks, so that they can be copied', () => {
    expect(renderTable(RUNS, { width: 20, style: plain })).toContain('Base Model   Qwen/Qwen3-235B-A22B-Instruct\n');
  });

  it('puts a last column that is for copying below its row', () => {
    const table = {
      columns: ['ID', 'Type', 'Path'],
      rows: [['1', 'training', 'tinker://run/weights/1']],
      lastBelow: true,
    };
    expect(renderTable(table, { width: 80, style: plain })).toContain('1   training  tinker://run/weights/1\n');
    expect(renderTable(table, { width: 20, style: plain })).toBe('ID  Type\n1   training\n  tinker://run/weights/1\n');
  });

  it('is only its title where there are no rows', () => {
    expect(renderTable({ ...RUNS, rows: [] }, { width: 80, style: plain })).toBe('2 runs\n');
  });

  it('counts wide characters as two cells', () => {
    const table = renderTable(
      {
        columns: ['A', 'B'],
        rows: [
          ['日本', 'x'],
          ['ab', 'y'],
        ],
      },
      { width: 80, style: plain },
    );
    expect(table).toBe('A     B\n日本  x\nab    y\n');
  });

  it('lets nothing of a server move the cursor or change colours', () => {
    const table = renderTable(
      { columns: ['A'], rows: [['\u001b[2Jevil\r\n\u009b31m\u202e']] },
      { width: 80, style: plain },
    );
    expect(table).toBe('A\n\ufffd[2Jevil\ufffd\ufffd\ufffd31m\ufffd\n');
  });
});

describe('colours', () => {
  const terminal = { write: () => {}, isTTY: true };
  it('are for terminals', () => {
    vi.stubEnv('NO_COLOR', '');
    vi.stubEnv('TERM', 'xterm');
    expect(renderProperties([['a', 'b']], styleFor(terminal))).toBe('\u001b[1ma\u001b[22m  b\n');
    expect(styleFor({ write: () => {} }).red('x')).toBe('x');
  });
  it('are off with NO_COLOR and on dumb terminals', () => {
    vi.stubEnv('NO_COLOR', '1');
    expect(styleFor(terminal).red('x')).toBe('x');
    vi.stubEnv('NO_COLOR', '');
    vi.stubEnv('TERM', 'dumb');
    expect(styleFor(terminal).red('x')).toBe('x');
  });
});

describe('wrap', () => {
  it('breaks after separators, and anywhere where it must', () => {
    expect(wrap('a-bc/def', 4)).toStrictEqual(['a-', 'bc/', 'def']);
    expect(wrap('abcdefgh', 3)).toStrictEqual(['abc', 'def', 'gh']);
    expect(wrap('', 3)).toStrictEqual(['']);
    expect(wrap('two words', 5)).toStrictEqual(['two', 'words']);
  });
  it('loses nothing but white space at the ends', () => {
    const text = 'tinker://46fc1f6c:train:0/weights/step-000020';
    for (let width = 1; width < 50; width++) expect(wrap(text, width).join('')).toBe(text);
  });
});

it('keeps ordinary text as it is', () => expect(oneLine('ä – 日本 ✓')).toBe('ä – 日本 ✓'));
