import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isRecord } from '../support/isRecord.js';
import { messageOf } from '../support/messageOf.js';
import { CliError } from './CliError.js';

/** What a module of the user's exports. */
export type UserModule = Readonly<Record<string, unknown>>;

/** Loads a module of the user's, TypeScript too. @throws CliError naming the file, and the line where one is known */
export async function loadModule(file: string): Promise<UserModule> {
  if (!existsSync(file)) throw new CliError(`${file}: no such file`);
  const url = pathToFileURL(resolve(file)).href;
  if (/\.[cm]?ts$/.test(file)) await readTypeScript(file);
  try {
    const module = (await import(url)) as UserModule;
    // Where the project is of type commonjs, as npm 11 makes it, a .ts file is CommonJS: its exports are the default one.
    return isRecord(module['default']) && 'default' in module['default'] ? module['default'] : module;
  } catch (error) {
    throw await inFile(file, url, error);
  }
}

/** An older Node reads no TypeScript: `tsx` of the user's project does, once it is imported. */
async function readTypeScript(file: string): Promise<void> {
  const { features, versions } = process as { features: { typescript?: unknown }; versions: NodeJS.ProcessVersions };
  if ((features.typescript ?? false) !== false || versions['deno'] !== undefined) return;
  let tsx: string;
  try {
    tsx = createRequire(join(process.cwd(), 'package.json')).resolve('tsx');
  } catch {
    throw new CliError(`${file}: Node ${versions.node} does not load TypeScript`, {
      details: 'Install tsx in this folder (npm install tsx), or use Node 22.18 or newer, or write it as .mjs.',
    });
  }
  await import(pathToFileURL(tsx).href);
}

async function inFile(file: string, url: string, error: unknown): Promise<CliError> {
  // Node keeps the line of a syntax error to itself, except for its own check.
  const trace = error instanceof SyntaxError ? await checked(file) : error instanceof Error ? (error.stack ?? '') : '';
  const place = [url, resolve(file)].flatMap((name) => trace.split(`${name}:`)[1] ?? [])[0];
  const line = /^\d+/.exec(place ?? '')?.[0];
  const name = error instanceof Error && !('code' in error) ? `${error.name}: ` : '';
  return new CliError(`${file}${line === undefined ? '' : `:${line}`}: ${name}${messageOf(error)}`);
}

const checked = (file: string): Promise<string> =>
  new Promise((done) => execFile(process.execPath, ['--check', file], (_, __, stderr) => done(stderr)));
