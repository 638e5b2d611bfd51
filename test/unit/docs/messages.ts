import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';
import { root } from './snippets.js';

/** A text of the program: an error, a line of a log, an event, a label. */
export interface Message {
  readonly where: string;
  readonly text: string;
}

/** Every text in the sources, comments left out; … stands for what is put into it. */
export function messagesIn(folder = 'src'): Message[] {
  return readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
    .map((path) => `${folder}/${path}`)
    .sort()
    .flatMap((path) => {
      if (path.endsWith('.ts')) return messagesOf(path, readFileSync(`${root}${path}`, 'utf8'));
      if (path.endsWith('.html')) return [{ where: path, text: textOfPage(readFileSync(`${root}${path}`, 'utf8')) }];
      return [];
    });
}

/** The texts of one module. What is joined with + is one text. */
export function messagesOf(path: string, source: string): Message[] {
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.ES2022);
  const found: Message[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return;
    const text = textOf(node);
    if (text === undefined) return ts.forEachChild(node, visit);
    const { line } = file.getLineAndCharacterOfPosition(node.getStart(file));
    found.push({ where: `${path}:${line + 1}`, text });
    insertsOf(node).forEach(visit);
  };
  visit(file);
  return found;
}

function textOf(node: ts.Node): string | undefined {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isTemplateExpression(node))
    return node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join('');
  if (!isSum(node)) return undefined;
  const [left, right] = [textOf(node.left), textOf(node.right)];
  return left === undefined && right === undefined ? undefined : (left ?? '…') + (right ?? '…');
}

/** What is put into a text may hold texts too. */
function insertsOf(node: ts.Node): readonly ts.Node[] {
  if (ts.isTemplateExpression(node)) return node.templateSpans.map(({ expression }) => expression);
  if (!isSum(node)) return [];
  return [node.left, node.right].flatMap((side) => (textOf(side) === undefined ? [side] : insertsOf(side)));
}

const isSum = (node: ts.Node): node is ts.BinaryExpression =>
  ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken;

/** What is read on a page, and what a screen reader says. */
const textOfPage = (page: string): string =>
  page
    .replace(/<(style|script)[^]*?<\/\1>/g, '')
    .replace(/<[^>]*?\b(?:aria-label|title|alt|placeholder)="([^"]*)"[^>]*>/g, ' $1 ')
    .replace(/<[^>]*>/g, ' ');
