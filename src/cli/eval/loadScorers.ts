import { existsSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { ServiceClient } from '../../client/index.js';
import type { Scorer } from '../../evals/index.js';
import { CliError } from '../CliError.js';
import type { Context } from '../context.js';
import { loadModule } from '../loadModule.js';
import { openSampler } from '../sample/openSampler.js';

export interface ScorerChoice {
  readonly scorer?: readonly string[];
  readonly judge?: string;
  readonly criteria?: string;
}

/** The scorers that a command line names, by name. @throws CliError saying what there is */
export async function loadScorers(
  context: Context,
  service: ServiceClient,
  { scorer: names = [], judge, criteria }: ScorerChoice,
): Promise<Readonly<Record<string, Scorer>>> {
  const found: Record<string, Scorer> = {};
  for (const name of names) Object.assign(found, await scorerOf(name));
  if (judge === undefined) return found;
  if (criteria === undefined) throw new CliError('--judge without --criteria', { exitCode: 2 });
  const { judged } = await import('../../evals/index.js');
  return { ...found, judged: judged({ ...(await openSampler(context, service, { model: judge })), criteria }) };
}

async function scorerOf(name: string): Promise<Readonly<Record<string, Scorer>>> {
  const { contains, exact, jsonSchema, numeric } = await import('../../evals/index.js');
  const ready: Readonly<Record<string, Scorer>> = { exact: exact(), contains: contains(), numeric: numeric() };
  if (ready[name] !== undefined) return { [name]: ready[name] };
  if (name.startsWith('json-schema='))
    return { json_schema: jsonSchema(readSchema(name.slice('json-schema='.length))) };
  if (!existsSync(name)) {
    throw new CliError(`No scorer ${name}`, {
      details: `There are ${Object.keys(ready).join(', ')}, json-schema=<file>, and custom modules: pass the path of one.`,
      exitCode: 2,
    });
  }
  const module = await loadModule(name);
  if (typeof module['default'] !== 'function') {
    throw new CliError(`${name} exports no scorer`, {
      details: 'Export one as default: export default ({ output, expected }) => (output === expected ? 1 : 0)',
    });
  }
  return { [basename(name).replace(/\.[^.]*$/, '')]: module['default'] as Scorer };
}

function readSchema(file: string): object {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as object;
  } catch (error) {
    throw new CliError(`${file}: ${(error as Error).message}`);
  }
}
