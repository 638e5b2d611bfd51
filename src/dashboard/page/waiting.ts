import type { OpenRequest, Pause } from '../state/changes.js';
import type { DashboardState } from '../state/DashboardState.js';
import { byId, make, replaceIfNew } from './dom.js';
import { bytes, clock, duration, whole } from './format.js';

const SHOWN = 100;

/** Why a request waits, in words. */
const STATES: Readonly<Record<string, string>> = {
  sent: 'the result',
  active: 'the result; it is being worked on',
  unknown: 'the result',
  paused_capacity: 'capacity: the service is short of it',
  paused_rate_limit: 'its turn: the limit of concurrent work is reached',
};

/** What every request waits for and why, and what stands still. */
export class Waiting {
  readonly #pauses = byId('pauses');
  readonly #summary = byId('waiting-summary');
  readonly #rows = byId('requests');
  readonly #notes = byId('notes');

  render({ events }: DashboardState, nowMs: number): void {
    const pauses = gathered(events.pausesAt(nowMs));
    this.#pauses.replaceChildren(...pauses.map((pause) => pauseRow(pause, nowMs)));

    const requests = [...events.requests.values()];
    this.#summary.textContent = requests.length === 0 ? 'Nothing is under way.' : summaryOf(requests);
    this.#rows.replaceChildren(
      ...pauses.map((pause) => unsentRow(pause, nowMs)),
      ...requests.slice(0, SHOWN).map((request) => requestRow(request, pauses, nowMs)),
    );

    const notes = events.notes.toArray().slice(-SHOWN).reverse();
    replaceIfNew(
      this.#notes,
      `${notes.length} ${notes[0]?.atMs ?? ''} ${notes[0]?.text ?? ''} ${events.notes.length}`,
      () =>
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

const TITLES = { backoff: 'Backing off', sampling: 'Sampling is paused', billing: 'Paused for billing' } as const;

function pauseRow(pause: Pause, nowMs: number): HTMLElement {
  const { kind, what, why, sinceMs, untilMs, attempt } = pause;
  const left = untilMs === undefined ? `for ${duration(nowMs - sinceMs)} now` : `${duration(untilMs - nowMs)} left`;
  const title = `${TITLES[kind]}${kind === 'backoff' ? ` on ${what}` : ''}`;
  return make(
    'div',
    { class: 'pause', 'data-kind': kind },
    make('b', {}, title),
    make('span', {}, left),
    make(
      'span',
      {},
      `${why}${attempt === undefined ? '' : ` (failed ${attempt === 1 ? 'once' : `${attempt} times`})`}`,
    ),
  );
}

function summaryOf(requests: readonly OpenRequest[]): string {
  const groups = new Map<string, number>();
  for (const { requestType, state } of requests) {
    const key = `${requestType}${state.startsWith('paused') ? ` (${state.replaceAll('_', ' ')})` : ''}`;
    groups.set(key, (groups.get(key) ?? 0) + 1);
  }
  const parts = [...groups].map(([name, count]) => `${whole(count)} × ${name}`);
  const more = requests.length > SHOWN ? `; the oldest ${SHOWN} are listed` : '';
  return `${whole(requests.length)} under way: ${parts.join(', ')}${more}.`;
}

/** What is not with the service, because it may not be sent yet. */
function unsentRow({ kind, what, why, sinceMs, untilMs = 0 }: Pause, nowMs: number): HTMLElement {
  const left = duration(untilMs - nowMs);
  const [work, next] = {
    sampling: ['Sample', `the end of the pause in ${left}`],
    backoff: [what, `the next try in ${left}`],
    billing: ['Everything', 'billing'],
  }[kind] as [string, string];
  return make(
    'tr',
    {},
    make('td', {}, work),
    make('td', { class: 'warn' }, `${next}: ${why}`),
    make('td', { class: 'number' }, duration(nowMs - sinceMs)),
    make('td', { class: 'number' }, '–'),
    make('td', {}, 'not sent'),
  );
}

function requestRow(request: OpenRequest, pauses: readonly Pause[], nowMs: number): HTMLElement {
  const { requestType, requestId, state, reason, sinceMs, target } = request;
  const billing = pauses.find(({ kind }) => kind === 'billing');
  const polls = pauses.find(({ kind, what }) => kind === 'backoff' && what.startsWith('retrieve'));
  const paused = state.startsWith('paused');
  const why =
    billing !== undefined
      ? 'billing'
      : paused || polls === undefined
        ? `${STATES[state] ?? state}${reason === undefined ? '' : ` (${reason})`}`
        : `the next poll in ${duration((polls.untilMs ?? nowMs) - nowMs)}: ${polls.why}`;
  return make(
    'tr',
    { title: requestId },
    make('td', {}, requestType),
    make('td', { class: paused || billing !== undefined || polls !== undefined ? 'warn' : '' }, why),
    make('td', { class: 'number' }, duration(nowMs - sinceMs)),
    make('td', { class: 'number' }, request.bytes > 0 ? bytes(request.bytes) : '–'),
    make('td', {}, make('code', {}, target)),
  );
}
