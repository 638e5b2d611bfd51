import { existsSync, readFileSync, statSync } from 'node:fs';
import { concat, defer, filter, type Observable, type OperatorFunction, tap } from 'rxjs';
import { JsonlFile } from '../../../support/files/jsonlFile.js';
import { writeAtomically } from '../../../support/files/writeAtomically.js';
import { fromEval } from '../fromEval.js';
import { protocolDifferences } from '../protocolDifferences.js';
import { readProtocol } from '../readProtocol.js';
import type { EvalProtocol, EvalRecord } from '../record.js';
import { exampleLine, protocolLine, resumedLine } from './evalLines.js';

/** Keeps the records of `make` in a file; `make` is told the ids that the file has. */
export function intoFile<T>(
  path: string,
  protocol: EvalProtocol,
  { retryFailures, now }: { readonly retryFailures: boolean; readonly now: () => number },
  make: (done: ReadonlySet<string>) => OperatorFunction<T, EvalRecord>,
): OperatorFunction<T, EvalRecord> {
  return (source) =>
    defer(() => {
      const continues = existsSync(path) && statSync(path).size > 0;
      // Opening it takes off a line that a crash left half written.
      const file = new JsonlFile(path);
      const close = () => file.close();
      const done = new Set<string>();
      try {
        if (continues && statSync(path).size > 0) {
          checkSame(path, readProtocol(path), protocol);
          file.append(resumedLine(now(), protocol));
        } else file.append(protocolLine(protocol));
      } catch (error) {
        close();
        throw error;
      }
      const again: string[] = [];
      const kept: Observable<EvalRecord> = fromEval(path).pipe(
        filter(({ id, failures }) => {
          const keeps = !retryFailures || failures.length === 0;
          if (keeps) done.add(id);
          else again.push(id);
          return keeps;
        }),
      );
      const fresh = defer(() => {
        const target = again.length === 0 ? file : without(path, file, new Set(again));
        const end = () => target.close();
        return source.pipe(
          make(done),
          tap({ next: (record) => target.append(exampleLine(record)), error: end, complete: end, unsubscribe: end }),
        );
      });
      return concat(kept, fresh).pipe(tap({ error: close, complete: close, unsubscribe: close }));
    });
}

/** Takes examples out of the file, so that each is in it once. */
function without(path: string, file: JsonlFile, ids: ReadonlySet<string>): JsonlFile {
  file.close();
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  const kept = lines.filter((line) => {
    const { type, id } = JSON.parse(line) as { readonly type: string; readonly id?: string };
    return type !== 'example' || !ids.has(id!);
  });
  writeAtomically(path, kept.map((line) => `${line}\n`).join(''));
  return new JsonlFile(path);
}

/** @throws Error naming the first thing that differs */
function checkSame(path: string, found: EvalProtocol, wanted: EvalProtocol): void {
  const [first] = protocolDifferences(found, wanted, { all: true });
  if (first === undefined) return;
  const { name, before, after } = first;
  throw new Error(
    `${path} has results of another evaluation: its ${name} was ${before} and now is ${after}. Choose another file, or the same options.`,
  );
}
