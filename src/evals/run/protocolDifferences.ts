import { isDeepStrictEqual } from 'node:util';
import type { EvalProtocol } from './record.js';

/** Something that was pinned, and differs between two evaluations. */
export interface ProtocolDifference {
  /** The setting that differs, such as `samplingParams`. */
  readonly name: string;
  /** As JSON; `absent` if it is not told. */
  readonly before: string;
  /** Its value in the later evaluation, as text. */
  readonly after: string;
}

/** What differs in how two evaluations were made, `versions` left out and, unless they are asked for, the model and the seed. */
export function protocolDifferences(
  before: EvalProtocol,
  after: EvalProtocol,
  { all = false }: { readonly all?: boolean } = {},
): readonly ProtocolDifference[] {
  const ignored = all ? ['versions'] : ['versions', 'model', 'seed'];
  // As they are written: JSON has no undefined.
  const [one, other] = [before, after].map((each) => JSON.parse(JSON.stringify(each)) as Record<string, unknown>);
  return [...new Set([...Object.keys(one!), ...Object.keys(other!)])]
    .filter((name) => !ignored.includes(name) && !isDeepStrictEqual(one![name], other![name]))
    .map((name) => ({
      name,
      before: JSON.stringify(one![name]) ?? 'absent',
      after: JSON.stringify(other![name]) ?? 'absent',
    }));
}
