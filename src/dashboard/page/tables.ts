import type { DashboardState } from '../state/DashboardState.js';
import { byId, cell, make, replaceIfNew } from './dom.js';
import { clock, dateOf, shortName, whole } from './format.js';

const SHOWN = 200;

/** The newest checkpoints of all runs. */
export function renderCheckpoints({ runs }: DashboardState): void {
  const all = [...runs.values()].flatMap(({ name, checkpoints }) =>
    checkpoints.toArray().map((checkpoint) => ({ run: name, ...checkpoint })),
  );
  // The newest of all runs first; those without a time keep their order.
  all.sort((a, b) => (a.atMs ?? 0) - (b.atMs ?? 0));
  const path = (label: string, text: string | undefined) =>
    cell(label, 'path', text === undefined ? '–' : make('code', {}, text));
  render('checkpoint', `${all.length} ${all.at(-1)?.name ?? ''} ${runs.size}`, all, (checkpoint) => {
    const { run, name, steps, atMs, statePath, samplerPath, kept, expiresAtMs } = checkpoint;
    return make(
      'tr',
      {},
      cell('Time', '', atMs === undefined ? '–' : make('time', {}, clock(atMs))),
      cell('Run', 'name', shortName(run)),
      cell('Name', 'name', name),
      cell('Steps', 'number', whole(steps)),
      path('To resume', statePath),
      path('To sample', samplerPath),
      cell('Kept', '', kept ? 'yes' : expiresAtMs === undefined ? 'until the next' : `until ${dateOf(expiresAtMs)}`),
    );
  });
}

/** The newest failures. */
export function renderErrors({ events: { failures } }: DashboardState): void {
  render('error', `${failures.length} ${failures.last?.atMs ?? ''}`, failures.toArray(), (failure) => {
    const { atMs, code, what, target = '', message, requestId } = failure;
    return make(
      'tr',
      requestId === undefined ? {} : { title: requestId },
      cell('Time', '', make('time', {}, clock(atMs))),
      cell('Code', 'bad', make('code', {}, code)),
      cell('What', 'name', what || '–', ...(target === '' ? [] : [make('small', {}, ` ${shortName(target)}`)])),
      cell('Message', 'wide', message),
    );
  });
}

/** Fills a table with the newest of `all`, the newest first; one with nothing in it is not shown. */
function render<T>(name: string, key: string, all: readonly T[], row: (value: T) => HTMLElement): void {
  byId(`${name}-table`).hidden = all.length === 0;
  byId(`${name}-none`).hidden = all.length > 0;
  replaceIfNew(byId(`${name}-rows`), key, () => all.slice(-SHOWN).reverse().map(row));
}
