import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';
import type { Message } from './messages.js';
import { root } from './snippets.js';

/** The comments of every module in a folder, JSDoc included. */
export const commentsIn = (folder: string): Message[] =>
  readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .sort()
    .flatMap((path) => commentsOf(`${folder}/${path}`, readFileSync(`${root}${folder}/${path}`, 'utf8')));

/** The comments of one module. Lines that follow each other are one text; blocks of code in them are left out. */
export function commentsOf(path: string, source: string): Message[] {
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.ES2022, true);
  const ranges = new Map<number, number>();
  const visit = (node: ts.Node): void => {
    // Texts of a template are tokens with nothing before them that could be a comment.
    if (node.kind !== ts.SyntaxKind.TemplateMiddle && node.kind !== ts.SyntaxKind.TemplateTail) {
      for (const { pos, end } of ts.getLeadingCommentRanges(source, node.getFullStart()) ?? []) ranges.set(pos, end);
      for (const { pos, end } of ts.getTrailingCommentRanges(source, node.getEnd()) ?? []) ranges.set(pos, end);
    }
    node.getChildren(file).forEach(visit);
  };
  visit(file);
  const comments: { text: string; line: number; end: number }[] = [];
  for (const [pos, end] of [...ranges].sort(([a], [b]) => a - b)) {
    const text = textOf(source.slice(pos, end));
    const { line } = file.getLineAndCharacterOfPosition(pos);
    const last = comments.at(-1);
    const continues = last !== undefined && source.startsWith('//', pos) && source.slice(last.end, pos).trim() === '';
    if (continues) Object.assign(last, { text: `${last.text} ${text}`, end });
    else comments.push({ text, line, end });
  }
  return comments.map(({ text, line }) => ({ where: `${path}:${line + 1}`, text }));
}

const textOf = (comment: string): string =>
  comment
    .replace(/^\/\/+|^\/\*+|\*+\/$/g, '')
    .replace(/^\s*\* ?/gm, '')
    .replace(/^```[\s\S]*?^```$/gm, '');
