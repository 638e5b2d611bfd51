import type { DashboardState } from '../state/DashboardState.js';
import { byId, make, replaceIfNew } from './dom.js';
import { clock, whole } from './format.js';

const SHOWN = 200;

/** The newest checkpoints of all runs. */
export function renderCheckpoints({ runs }: DashboardState): void {
  const all = [...runs.values()].flatMap(({ name, checkpoints }) =>
    checkpoints.toArray().map((checkpoint) => ({ run: name, ...checkpoint })),
  );
  const path = (text: string | undefined) => make('td', {}, text === undefined ? '–' : make('code', {}, text));
  replaceIfNew(byId('checkpoint-rows'), `${all.length} ${all.at(-1)?.name ?? ''} ${runs.size}`, () =>
    all.length === 0
      ? [nothing(6, 'No checkpoint yet.')]
      : all
          .slice(-SHOWN)
          .reverse()
          .map(({ run, name, steps, statePath, samplerPath, kept }) =>
            make(
              'tr',
              {},
              make('td', {}, run),
              make('td', {}, name),
              make('td', { class: 'number' }, whole(steps)),
              path(statePath),
              path(samplerPath),
              make('td', {}, kept ? 'yes' : 'until the next'),
            ),
          ),
  );
}

/** The newest failures. */
export function renderErrors({ events: { failures } }: DashboardState): void {
  replaceIfNew(byId('error-rows'), `${failures.length} ${failures.last?.atMs ?? ''}`, () =>
    failures.length === 0
      ? [nothing(4, 'No errors.')]
      : failures
          .toArray()
          .slice(-SHOWN)
          .reverse()
          .map(({ atMs, code, what, message, requestId }) =>
            make(
              'tr',
              requestId === undefined ? {} : { title: requestId },
              make('td', {}, make('time', {}, clock(atMs))),
              make('td', { class: 'bad' }, make('code', {}, code)),
              make('td', {}, what),
              make('td', { class: 'message' }, message),
            ),
          ),
  );
}

const nothing = (columns: number, text: string): HTMLElement =>
  make('tr', {}, make('td', { colspan: String(columns), class: 'empty' }, text));
