import { existsSync, readFileSync, statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import {
  concatMap,
  defer,
  distinct,
  exhaustMap,
  from,
  map,
  merge,
  mergeMap,
  type Observable,
  type SchedulerLike,
  timer,
} from 'rxjs';
import type { Change, DashboardSample } from '../state/changes.js';
import { groupChanges } from './groupChanges.js';
import { stepChanges, type TimedStep } from './stepChanges.js';
import { tailLines } from './tailLines.js';
import { parseJson } from '../../support/parseJson.js';

const LOOK_MS = 500;
const LOOK_FOR_RUNS_MS = 3000;
const CONFIG_BYTES = 64 * 1024;

/**
 * The runs in a log folder as changes, now and as they grow: the folder's own `metrics.jsonl`, and that of each folder
 * in it, as `metricsLog` writes them. A `samples.jsonl` beside it is shown too, one {@link DashboardSample} per line, and so is the
 * `rollouts.jsonl` that `rlLog` writes.
 * Never errors and never completes; a line that is not a step is skipped.
 */
export function logChanges(folder: string, nextId: () => number, scheduler: SchedulerLike): Observable<Change> {
  const root = resolve(folder);
  return timer(0, LOOK_FOR_RUNS_MS, scheduler).pipe(
    exhaustMap(() => runFolders(root)),
    mergeMap((folders) => from(folders)),
    distinct(),
    mergeMap((run) => {
      const name = run === root ? basename(root) : run.slice(root.length + 1);
      return merge(
        stepsIn(run, name, scheduler),
        samplesIn(run, name, nextId, scheduler),
        groupsIn(run, name, scheduler),
      );
    }),
  );
}

async function runFolders(root: string): Promise<string[]> {
  const inside = await readdir(root, { withFileTypes: true }).catch(() => []);
  const folders = inside.filter((entry) => entry.isDirectory()).map(({ name }) => join(root, name));
  return [root, ...folders.sort()].filter((folder) => existsSync(join(folder, 'metrics.jsonl')));
}

function stepsIn(folder: string, run: string, scheduler: SchedulerLike): Observable<Change> {
  return defer(() => {
    let toChanges = stepChanges(run);
    return tailLines(join(folder, 'metrics.jsonl'), LOOK_MS, scheduler).pipe(
      concatMap(({ fresh, lines }): Iterable<Change> => {
        if (!fresh) return toChanges(lines.flatMap(parsed<TimedStep>).filter(isStep));
        toChanges = stepChanges(run);
        return [{ kind: 'run', run, status: 'logged', config: configIn(folder), fresh: true }];
      }),
    );
  });
}

/** What the run was started with. A file that is missing, broken or very large is left out. */
function configIn(folder: string): unknown {
  const file = join(folder, 'config.json');
  const isSmall = (statSync(file, { throwIfNoEntry: false })?.size ?? Infinity) <= CONFIG_BYTES;
  return isSmall ? parseJson(readFileSync(file, 'utf8')) : undefined;
}

function samplesIn(folder: string, run: string, nextId: () => number, scheduler: SchedulerLike): Observable<Change> {
  return tailLines(join(folder, 'samples.jsonl'), LOOK_MS, scheduler).pipe(
    concatMap(({ lines }) => lines.flatMap(parsed<DashboardSample>).filter(isSample)),
    map((sample) => ({
      kind: 'sample',
      sample: { ...sample, length: sample.length ?? sample.pieces.length, run, id: nextId() },
    })),
  );
}

function groupsIn(folder: string, run: string, scheduler: SchedulerLike): Observable<Change> {
  const toChanges = groupChanges(run);
  return tailLines(join(folder, 'rollouts.jsonl'), LOOK_MS, scheduler).pipe(
    concatMap(({ lines }) => toChanges(lines.flatMap(parsed<unknown>))),
  );
}

function parsed<T>(line: string): T[] {
  const value = parseJson(line) as T | undefined;
  return value === undefined ? [] : [value];
}

const isStep = (step: TimedStep | null): boolean => typeof step === 'object' && Number.isFinite(step?.index);
const isSample = (sample: DashboardSample | null): boolean =>
  typeof sample === 'object' &&
  Array.isArray(sample?.pieces) &&
  sample.pieces.every((piece) => typeof piece === 'string') &&
  Array.isArray(sample.tokens) &&
  typeof sample.prompt === 'string' &&
  Number.isFinite(sample.atMs);
