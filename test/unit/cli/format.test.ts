import { expect, it } from 'vitest';
import { withNpxPrefix } from '../../../src/cli/withNpxPrefix.js';
import { columnsOf, toCsv } from '../../../src/cli/billing/csv.js';
import { CliError } from '../../../src/cli/CliError.js';
import { note } from '../../../src/cli/context.js';
import { explain } from '../../../src/cli/explain.js';
import { count, shellWord, size, when } from '../../../src/cli/output/format.js';
import { sparkline } from '../../../src/cli/terminal/sparkline.js';
import { contextOf } from './terminal.js';
import { APIConnectionError, NotFoundError, ValidationError } from 'tinker-rx';

it.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1536, '1.5 KB'],
  [5 * 1024 ** 3, '5.0 GB'],
  [3000 * 1024 ** 5, '3000.0 PB'],
])('%d bytes are %s', (bytes, text) => expect(size(bytes)).toBe(text));

const NOW = Date.parse('2026-03-10T12:00:00Z');
it.each([
  ['2026-03-10T11:59:30Z', 'just now'],
  ['2026-03-10T12:00:30Z', 'in less than a minute'],
  ['2026-03-10T11:57:00Z', '3 minutes ago'],
  ['2026-03-10T09:59:00Z', '2 hours ago'],
  ['2026-03-10T09:59:00', '2 hours ago'],
  ['2026-03-10T10:59:00+01:00', '2 hours ago'],
  ['2026-03-09T11:00:00Z', '1 day ago'],
  ['2026-03-15T12:00:01Z', 'in 5 days'],
  ['2026-02-20T12:00:00Z', '2 weeks ago'],
  ['2025-12-01T12:00:00Z', '2025-12-01'],
  ['nonsense', 'nonsense'],
  [undefined, 'N/A'],
])('%s is %s', (time, text) => expect(when(time, NOW)).toBe(text));

it('counts', () => {
  expect(count(1, 'step')).toBe('1 step');
  expect(count(12345, 'step')).toBe('12,345 steps');
});

it('names commands as the user calls them', () => {
  const text =
    'Continue with: tinker-rx train --resume x, as `tinker-rx help` and npx tinker-rx say; tinker-rx/tiny and @tinker-rx x stay';
  expect(withNpxPrefix(text, {})).toBe(text);
  for (const environment of [{ npm_command: 'exec' }, { npm_lifecycle_event: 'demo' }])
    expect(withNpxPrefix(text, environment)).toBe(
      'Continue with: npx tinker-rx train --resume x, as `npx tinker-rx help` and npx tinker-rx say; tinker-rx/tiny and @tinker-rx x stay',
    );
});

it('quotes for a shell where it has to', () => {
  expect(shellWord('runs/a-b_c.d')).toBe('runs/a-b_c.d');
  expect(shellWord("it's here")).toBe(`'it'\\''s here'`);
});

it('draws numbers from the lowest to the highest', () => {
  expect(sparkline([0, 1, 2, 3, 4, 5, 6, 7])).toBe('▁▂▃▄▅▆▇█');
  expect(sparkline([1, 1])).toBe('▁▁');
  expect(
    sparkline(
      Array.from({ length: 100 }, (_, place) => place),
      4,
    ),
  ).toBe('▁▃▆█');
});

it('writes CSV that a spreadsheet reads back', () => {
  const rows = [
    { a: 1, b: 'x,"y"' },
    { b: null, c: { d: 1 } },
  ];
  expect(columnsOf(rows)).toStrictEqual(['a', 'b', 'c']);
  expect(toCsv(rows)).toBe('a,b,c\r\n1,"x,""y""",\r\n,,"{""d"":1}"\r\n');
});

it('tells failures in a sentence and an exit code', () => {
  const options = { status: 404, headers: {}, body: undefined };
  expect(explain(new NotFoundError('GET x: 404', options))).toStrictEqual({
    message: 'Resource not found',
    details: 'Details: GET x: 404',
    exitCode: 1,
  });
  expect(explain(new APIConnectionError('refused')).details).toMatch(/TINKER_BASE_URL.*\nDetails: refused$/);
  expect(explain(new ValidationError('rank must be > 0'))).toStrictEqual({ message: 'rank must be > 0', exitCode: 1 });
  expect(explain(new CliError('no', { details: 'why', exitCode: 2 }))).toStrictEqual({
    message: 'no',
    details: 'why',
    exitCode: 2,
  });
  expect(explain(Object.assign(new Error('x'), { code: 'ENOENT', path: 'a.jsonl' })).message).toBe(
    'a.jsonl: no such file or folder',
  );
  expect(explain(Object.assign(new Error('x'), { code: 'EADDRINUSE', port: 80 })).message).toBe(
    'port 80: the port is in use already',
  );
  expect(explain('odd')).toStrictEqual({ message: 'odd', exitCode: 1 });
});

it('says what a server said without what would steer the terminal', () => {
  const { context, written } = contextOf({ columns: 80 });
  note(context, 'a\u001b[2Jb\u009b31mc\u202ed');
  expect(written.stderr).toBe('\r\u001b[Ka [2Jb 31mc d\n');
});

it.each([
  ['ENOSPC', 'no space left on the device'],
  ['EROFS', 'is on a read-only disk'],
  ['EACCES', 'permission denied'],
])('names the path of %s', (code, words) => {
  const error = Object.assign(new Error(`${code}: write`), { code, path: '/runs/first/metrics.jsonl' });
  expect(explain(error).message).toBe(`/runs/first/metrics.jsonl: ${words}`);
});
