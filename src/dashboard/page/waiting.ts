import type { BudgetName, Load, Pause } from '../state/changes.js';
import type { DashboardState } from '../state/DashboardState.js';
import { byId, cell, make, meter, patch, replaceIfNew } from './dom.js';
import { bytes, clock, duration, shortName, whole } from './format.js';
import { type Wait, waitsOf } from './waits.js';

const SHOWN = 100;
const TITLES = { backoff: 'Backing off', sampling: 'Sampling is paused', billing: 'Paused for billing' } as const;

/** What every request waits for and why, and what stands still. */
export function renderWaiting({ events }: DashboardState, nowMs: number): void {
  const pauses = gathered(events.pausesAt(nowMs));
  patch(
    byId('pauses'),
    pauses.map((pause) => pauseRow(pause, nowMs)),
  );
  // Read out when it changes, not with every second of a countdown.
  const said = pauses.map(titleOf).join('. ');
  if (byId('said').textContent !== said) {
    byId('said').textContent = said;
    // An element that is scrolled to must not end up behind them.
    const covered = byId('header').offsetHeight + byId('pauses').offsetHeight + 8;
    document.documentElement.style.scrollPaddingTop = `${covered}px`;
  }

  const waits = waitsOf(events, nowMs);
  const told = events.load !== undefined || Object.keys(events.counts).length > 0;
  byId('waiting-summary').textContent = told
    ? summaryOf(waits, events.load?.calls)
    : 'A run that is read from its log shows no waits. A run that serves this page shows here what it waits for.';
  byId('lately').hidden = !told;
  byId('waits').hidden = waits.length === 0;
  patch(
    byId('requests'),
    waits.slice(0, SHOWN).map((wait) => waitRow(wait, nowMs)),
  );
  patch(byId('budgets'), budgetTiles(events.load));

  const notes = events.notes.toArray().slice(-SHOWN).reverse();
  const key = `${notes.length} ${notes[0]?.atMs ?? ''} ${notes[0]?.text ?? ''} ${events.notes.length}`;
  replaceIfNew(byId('notes'), key, () =>
    notes.length === 0
      ? [make('li', { class: 'empty' }, 'Nothing to tell.')]
      : notes.map(({ atMs, level, text }) =>
          make(
            'li',
            {},
            make('time', {}, clock(atMs)),
            make('span', { class: level === 'error' ? 'bad' : level === 'warning' ? 'warn' : '' }, text),
          ),
        ),
  );
}

/** Many requests may back off on one path at once: the one that lasts longest speaks for them. */
function gathered(pauses: readonly Pause[]): Pause[] {
  const longest = new Map<string, Pause>();
  for (const pause of pauses) {
    const key = `${pause.kind} ${pause.what}`;
    if ((longest.get(key)?.untilMs ?? -1) <= (pause.untilMs ?? Infinity)) longest.set(key, pause);
  }
  return [...longest.values()];
}

const titleOf = ({ kind, what }: Pause): string => `${TITLES[kind]}${kind === 'backoff' ? ` on ${what}` : ''}`;

function pauseRow(pause: Pause, nowMs: number): HTMLElement {
  const { kind, why, sinceMs, untilMs, attempt } = pause;
  const left = untilMs === undefined ? `for ${duration(nowMs - sinceMs)} now` : `${duration(untilMs - nowMs)} left`;
  return make(
    'div',
    { class: 'pause', 'data-kind': kind },
    make('b', {}, titleOf(pause)),
    make('span', {}, left),
    make(
      'span',
      {},
      `${why}${attempt === undefined ? '' : ` (failed ${attempt === 1 ? 'once' : `${attempt} times`})`}`,
    ),
  );
}

function summaryOf(waits: readonly Wait[], calls?: number): string {
  if (waits.length === 0) return 'Nothing is in flight.';
  const count = (some: readonly Wait[]) => some.reduce((sum, each) => sum + each.count, 0);
  const accepted = waits.reduce((sum, { ids }) => sum + ids.length, 0);
  const held = count(waits.filter((wait) => wait.held));
  const parts = [
    `${whole(calls ?? count(waits))} in flight`,
    `${whole(accepted)} with the service`,
    ...(held > 0 ? [`${whole(held)} held up`] : []),
    ...(waits.length > SHOWN ? [`the first ${SHOWN} lines of ${whole(waits.length)}`] : []),
  ];
  return `${parts.join(' · ')}.`;
}

const BUDGETS: Readonly<Record<BudgetName, string>> = {
  sampleSlots: 'Samples being sent',
  sampleBytes: 'Prompts being sent',
  trainingBytes: 'Training data being sent',
  resultBytes: 'Results being fetched',
};

/** What the calls share, and how much of it is taken. */
function budgetTiles(load: Load | undefined): HTMLElement[] {
  if (load?.budgets === undefined) return [];
  return Object.entries(load.budgets).map(([name, { inUse, size, waiting }]) => {
    const text = name === 'sampleSlots' ? whole : bytes;
    const share = size > 0 ? Math.min(1, inUse / size) : 0;
    const line = waiting > 0 ? [make('span', { class: 'warn' }, `${whole(waiting)} in line`)] : [];
    return make(
      'div',
      { 'data-budget': name },
      make('dt', {}, BUDGETS[name as BudgetName]),
      make('dd', {}, make('span', {}, text(inUse)), make('small', {}, ` of ${text(size)}`), ...line),
      meter(share),
    );
  });
}

function waitRow({ what, count, why, held, sinceMs, bytes: size, target, ids }: Wait, nowMs: number): HTMLElement {
  const name = count === 1 ? [what] : [what, make('span', { class: 'times' }, ` × ${whole(count)}`)];
  return make(
    'tr',
    ids.length === 0 ? {} : { title: ids.slice(0, 10).join('\n') },
    cell('Request', 'name', ...name),
    cell('Waits for', held ? 'wide warn' : 'wide', why),
    cell('Since', 'number', duration(nowMs - sinceMs)),
    cell('Size', 'number', size > 0 ? bytes(size) : '–'),
    cell('Target', 'target', target === '' ? '–' : make('code', { title: target }, shortName(target))),
  );
}
