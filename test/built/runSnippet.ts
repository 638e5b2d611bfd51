import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import ts from 'typescript';
import { root } from '../unit/docs/snippets.js';

/** Inside the package, so that it can be imported by its name, and in no one's way. */
const FOLDER = `${root}artifacts`;

/** Runs a snippet as a newcomer would: on the built package, in a checkout, without a key. Gives what it printed. */
export async function runSnippet(source: string): Promise<string> {
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: true },
  });
  const { TINKER_API_KEY: _, TINKER_BASE_URL: __, ...env } = process.env;
  mkdirSync(FOLDER, { recursive: true });
  const folder = mkdtempSync(`${FOLDER}/snippet-`);
  try {
    writeFileSync(`${folder}/snippet.mjs`, outputText);
    const { stdout } = await promisify(execFile)(process.execPath, [`${folder}/snippet.mjs`], { cwd: folder, env });
    return stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The shape of an output: numbers and ids differ from run to run and from machine to machine. */
export const shapeOf = (text: string): string =>
  text
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
    .replace(/token=[\w-]+/g, 'token=<token>')
    .replace(/-?\d+(\.\d+)?(e-?\d+)?/g, '#')
    .trimEnd();

/** A pattern for what a page shows: a line of … stands for any number of lines, … in a line for anything. */
export const patternOf = (shown: string): RegExp =>
  new RegExp(
    `^${shapeOf(shown)
      .split('\n')
      .map((line) => (line === '…' ? '[^]*?' : line.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '.*')))
      .join('\n')
      .replaceAll('\n[^]*?\n', '\n[^]*?')}$`,
  );
