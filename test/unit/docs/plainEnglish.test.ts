/** What users read is plain English: no idiom of the list below, no long line of prose, and a title and a group for every page. */
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { buildProgram } from '../../../src/cli/program.js';
import { surroundings } from '../cli/terminal.js';
import { commentsIn, commentsOf } from './comments.js';
import { idiomsIn, idiomsInComment } from './idioms.js';
import { messagesIn, messagesOf } from './messages.js';
import { PAGES, root } from './snippets.js';

const read = (page: string): string => readFileSync(`${root}${page}`, 'utf8');
const withoutComments = (page: string): string => page.replace(/^<!--[\s\S]*?-->$/gm, '');
/** Without blocks of TypeScript, shell and JSON; what a program prints is left in. */
const withoutPrograms = (page: string): string =>
  withoutComments(page).replace(/^```(?!text|console)\w+\n[\s\S]*?^```$/gm, '');
const withoutCode = (page: string): string =>
  withoutComments(page)
    .replace(/^---\n[\s\S]*?\n---\n/, '')
    .replace(/^ *```[\s\S]*?^ *```$/gm, '');
const readers = PAGES.filter((page) => page !== 'CONTRIBUTING.md');

const commandsOf = (command: Command): Command[] => [command, ...command.commands.flatMap(commandsOf)];
const program = buildProgram({ surroundings: surroundings().surroundings, finish: () => {} });

describe('plain English', () => {
  it.each(readers)('in %s', (page) => {
    expect(idiomsIn(page, withoutPrograms(read(page)))).toStrictEqual([]);
  });

  it('in the help of every command', () => {
    const commands = commandsOf(program).filter((command) => !command.name().startsWith('__'));
    expect(commands.length).toBeGreaterThan(30);
    expect(commands.flatMap((command) => idiomsIn(command.name(), command.helpInformation()))).toStrictEqual([]);
  });

  it('in errors, log lines, events and labels', () => {
    const messages = messagesIn();
    expect(messages.length).toBeGreaterThan(5000);
    expect(messages.flatMap(({ where, text }) => idiomsIn(where, text))).toStrictEqual([]);
  });

  it('is looked for in every text of a module, and not in its comments', () => {
    const source = [
      "// a comment that goes on\nimport { a } from './goes on.js';",
      "throw new Error(`step ${step} goes ` + 'on');",
      "log(`${ready ? 'it is under way' : ''}`);",
    ];
    expect(messagesOf('a.ts', source.join('\n')).flatMap(({ where, text }) => idiomsIn(where, text))).toStrictEqual([
      'a.ts:3: "goes on" in "…step … goes on…" → continues, resumes',
      'a.ts:4: "under way" in "…it is under way…" → in flight, pending',
    ]);
  });

  it('in the comments of src', () => {
    const comments = commentsIn('src');
    expect(comments.length).toBeGreaterThan(1000);
    expect(comments.flatMap(({ where, text }) => idiomsInComment(where, text))).toStrictEqual([]);
  });

  it('is looked for in every comment of a module, and not in its texts and code', () => {
    const source = [
      '/** Undefined where\n * there is none. */',
      "const a = 'for ever'; // it goes",
      '// on',
      '/**\n * ```ts\n * // goes on\n * ```\n */',
      'const b = `${a /* under way */} goes on`;',
    ].join('\n');
    expect(commentsOf('a.ts', source).flatMap(({ where, text }) => idiomsInComment(where, text))).toStrictEqual([
      'a.ts:1: "Undefined where" in "…Undefined where there is none.…" → undefined if, @throws … if',
      'a.ts:3: "goes on" in "…it goes on…" → continues, resumes',
      'a.ts:10: "under way" in "…under way…" → in flight, pending',
    ]);
  });

  it('is missed by what the list is for', () => {
    const bad = [
      '0.3 nats a token',
      'training goes on',
      'a loss of your own',
      'the reply\nthat is under way',
      'retries by itself',
    ];
    for (const text of bad) expect(idiomsIn('page', text)).toHaveLength(1);
    expect(idiomsIn('page', 'Put a token in a line. Go on the site. It owns a key.')).toStrictEqual([]);
  });
});

describe('layout', () => {
  it.each([...PAGES, 'SECURITY.md', 'CHANGELOG.md'])('%s has no line of prose over 140 characters', (page) => {
    const long = withoutCode(read(page))
      .split('\n')
      // A table is as wide as it is, a signature one piece of code, and a link cannot be broken.
      .filter((line) => line.length > 140 && !/^\|/.test(line) && !/^`[^`]+`$/.test(line) && /\s/.test(line));
    expect(long.map((line) => line.slice(0, 80))).toStrictEqual([]);
  });

  it.each(PAGES.filter((page) => page.startsWith('docs/')))('%s has a title and a known group', (page) => {
    const head = /^---\n([\s\S]*?)\n---\n\n# /.exec(read(page))?.[1] ?? '';
    expect(/^title: \S.*$/m.exec(head)?.[0]).toBeDefined();
    expect(['Start', 'Guides', 'Concepts', 'Reference', 'Help', 'Internals']).toContain(
      /^group: (.*)$/m.exec(head)?.[1],
    );
  });

  it('docs/README.md lists every page under its group, once', () => {
    const parts = read('docs/README.md')
      .split(/^## /m)
      .slice(1)
      .map(
        (part) =>
          [part.split('\n', 1)[0]!, Array.from(part.matchAll(/\]\(([\w-]+\.md)\)/g), ([, page]) => page!)] as const,
      );
    const listed = parts.flatMap(([group, pages]) => pages.map((page) => `${group}: ${page}`)).sort();
    const groups = PAGES.filter((page) => page.startsWith('docs/') && page !== 'docs/README.md').map((page) => {
      const group = /^group: (.*)$/m.exec(read(page))?.[1] ?? 'none';
      return `${group}: ${page.slice('docs/'.length)}`;
    });
    expect(listed).toStrictEqual(groups.sort());
  });
});
