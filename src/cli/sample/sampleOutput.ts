import { existsSync, readFileSync, statSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { JsonlFile } from '../../support/files/jsonlFile.js';
import { CliError } from '../CliError.js';
import { shellWord } from '../output/format.js';
import { parseJson } from '../../support/parseJson.js';

/** One prompt's samples as they are written. */
export interface SampleLine {
  readonly index: number;
  readonly prompt: unknown;
  readonly samples: readonly unknown[];
}

/** A file that results are added to as they finish, and what it held before. */
export interface SampleOutput {
  /** How many prompts it has the samples of already. */
  readonly found: number;
  /** Whether it has this prompt's samples. Throws if it has another's in its place. */
  has(prompt: { readonly index: number; readonly source: unknown }): boolean;
  append(line: SampleLine): void;
  close(): void;
}

/** Opens the file of `--out`: a new one, or with `--resume` one that an earlier command left. */
export function openSampleOutput(path: string, resume: boolean): SampleOutput {
  if (!resume && existsSync(path) && statSync(path).size > 0)
    throw new CliError(`${path} exists already`, {
      details: `Add what is missing with: --out ${shellWord(path)} --resume\nOr choose another file.`,
    });
  // Opening it takes off a line that a crash left half written.
  const file = new JsonlFile(path);
  const prompts = new Map(readLines(path).map(({ index, prompt }) => [index, prompt]));
  return {
    found: prompts.size,
    has: ({ index, source }) => {
      if (!prompts.has(index)) return false;
      // As it was written: JSON has no undefined, and other kinds of zero.
      if (isDeepStrictEqual(prompts.get(index), JSON.parse(JSON.stringify(source)))) return true;
      throw new CliError(`${path} has the samples of other prompts: prompt ${index + 1} is not the same`, {
        details: 'With --resume the prompts must be those of the first time, in the same order.',
      });
    },
    append: (line) => file.append(line),
    close: () => file.close(),
  };
}

function readLines(path: string): SampleLine[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((text, place) => {
      if (text === '') return [];
      const line = parseJson(text) as Partial<SampleLine> | null | undefined;
      if (Number.isInteger(line?.index) && Array.isArray(line?.samples)) return [line as SampleLine];
      throw new CliError(`${path}:${place + 1}: not a line that tinker-rx sample writes`);
    });
}
