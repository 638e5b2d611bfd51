import { readdirSync, statSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { basename, join } from 'node:path';
import { catchError, forkJoin, map, type Observable, of, toArray } from 'rxjs';
import { messageOf } from '../../support/messageOf.js';
import {
  compareEvals,
  type EvalPair,
  type EvalRecord,
  fromEval,
  protocolDifferences,
  readProtocol,
} from '../../evals/index.js';
import { readPage } from './page.js';
import { redact } from './redact.js';

/** How many changed examples of each kind a page is sent. */
const MOST_PAIRS = 200;
const JSON_HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};

/** Answers for the page that puts two evaluations beside each other; returns whether it has this address. */
export function evalPages(places: readonly string[]): (url: URL, response: ServerResponse) => boolean {
  const send = (response: ServerResponse, status: number, value: unknown) =>
    void response.writeHead(status, JSON_HEADERS).end(redact(JSON.stringify(value)));
  return ({ pathname, searchParams }, response) => {
    if (pathname === '/compare') {
      const page = readPage('compare.html');
      response.writeHead(200, page.headers).end(page.html);
      return true;
    }
    if (pathname === '/compare/list') {
      send(
        response,
        200,
        resultFiles(places).map(({ name, model, writtenMs }) => ({ name, model, writtenMs })),
      );
      return true;
    }
    if (pathname !== '/compare/data') return false;
    const files = resultFiles(places);
    const [before, after] = ['before', 'after'].map((side) => files[Number(searchParams.get(side) ?? NaN)]);
    if (before === undefined || after === undefined) send(response, 404, { error: 'no such results' });
    else {
      comparison(before.path, after.path)
        .pipe(catchError((error: unknown) => of({ error: messageOf(error) })))
        .subscribe((value) => send(response, 'error' in value ? 500 : 200, value));
    }
    return true;
  };
}

interface ResultFile {
  readonly path: string;
  readonly name: string;
  readonly model: string | undefined;
  readonly writtenMs: number;
}

/** The result files among the places, in the order of their names. Other files are passed over. */
function resultFiles(places: readonly string[]): readonly ResultFile[] {
  return places
    .flatMap((place) =>
      statSync(place).isDirectory()
        ? readdirSync(place)
            .filter((name) => name.endsWith('.jsonl'))
            .sort()
            .map((name) => join(place, name))
        : [place],
    )
    .flatMap((path) => {
      try {
        return [{ path, name: basename(path), model: readProtocol(path).model, writtenMs: statSync(path).mtimeMs }];
      } catch {
        return [];
      }
    });
}

function comparison(before: string, after: string): Observable<object> {
  const records = (path: string) => fromEval(path).pipe(toArray());
  return forkJoin([records(before), records(after)]).pipe(
    map(([old, fresh]) => {
      const { regressions, improvements, ...facts } = compareEvals(old, fresh);
      return {
        ...facts,
        differences: protocolDifferences(readProtocol(before), readProtocol(after)),
        regressions: regressions.slice(0, MOST_PAIRS).map(pairOf),
        improvements: improvements.slice(0, MOST_PAIRS).map(pairOf),
      };
    }),
  );
}

const pairOf = ({ id, difference, before, after }: EvalPair) => ({
  ...{ id, difference, input: after.input, expected: after.expected ?? null },
  ...{ before: said(before), after: said(after) },
});
const said = ({ samples }: EvalRecord) => samples.map(({ score, output }) => ({ score, output }));
