import { closeSync, openSync, readSync } from 'node:fs';
import { decodeLine } from './internal/evalLines.js';
import type { EvalProtocol } from './record.js';

const MOST_BYTES = 1024 * 1024;

/** How the evaluation in a result file was made: its first line. @throws Error if the file is not a result file */
export function readProtocol(path: string): EvalProtocol {
  const descriptor = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(MOST_BYTES);
    const [line = ''] = bytes.toString('utf8', 0, readSync(descriptor, bytes)).split('\n', 1);
    const { protocol } = decodeLine(JSON.parse(line));
    if (protocol !== undefined) return protocol;
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
  } finally {
    closeSync(descriptor);
  }
  throw new Error(`${path} is not a results file: its first line is not a protocol`);
}
