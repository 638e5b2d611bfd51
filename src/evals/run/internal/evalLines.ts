import * as t from 'io-ts';
import { isLeft } from 'fp-ts/lib/Either.js';
import type { EvalProtocol, EvalRecord } from '../record.js';

const VERSION = 1;

const Numbers = t.record(t.string, t.number);
const Sample = t.intersection([
  t.type({ index: t.number, seed: t.number, output: t.string, score: t.number, scores: Numbers }),
  t.type({ promptTokens: t.number, sampledTokens: t.number, stopReason: t.string, durationMs: t.number }),
  t.partial({ metrics: t.record(t.string, t.union([t.number, t.null])) }),
]);
const Failure = t.type({
  index: t.number,
  stage: t.keyof({ rollout: null, scorer: null }),
  name: t.string,
  message: t.string,
});
const Line = t.intersection([
  t.type({ id: t.string, input: t.string, samples: t.array(Sample), failures: t.array(Failure), durationMs: t.number }),
  t.partial({ expected: t.string }),
]);
const Protocol = t.type({
  ...{ version: t.literal(VERSION), samples: t.number, seed: t.number, passAt: t.number },
  ...{ samplingParams: t.UnknownRecord, scorers: t.array(t.string), versions: t.record(t.string, t.string) },
});

export const protocolLine = (protocol: EvalProtocol): object => ({ type: 'protocol', version: VERSION, ...protocol });
export const exampleLine = (record: EvalRecord): object => ({ type: 'example', ...record });
/** Says that a run continued, and on what. */
export const resumedLine = (atMs: number, { versions }: EvalProtocol): object => ({ type: 'resumed', atMs, versions });

/** One line of a result file. @throws TypeError if it is not one */
export function decodeLine(row: unknown): { readonly protocol?: EvalProtocol; readonly record?: EvalRecord } {
  const { type, ...rest } = (row ?? {}) as { readonly type?: unknown };
  if (type === 'resumed') return {};
  if (type === 'example' && !isLeft(Line.decode(rest))) return { record: rest as unknown as EvalRecord };
  if (type === 'protocol') {
    const found = (rest as { readonly version?: unknown }).version;
    if (found !== VERSION) throw new TypeError(`results of version ${String(found)}, this release reads ${VERSION}`);
    if (!isLeft(Protocol.decode(rest))) {
      const { version: _, ...protocol } = rest as { readonly version: unknown };
      return { protocol: protocol as unknown as EvalProtocol };
    }
  }
  throw new TypeError('not a line of evaluation results');
}
