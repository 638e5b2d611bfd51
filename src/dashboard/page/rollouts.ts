import { fromEvent, merge, type Observable, Subject } from 'rxjs';
import type { DashboardGroup } from '../state/changes.js';
import type { DashboardState } from '../state/DashboardState.js';
import { byId, cell, fillSelect, make, replaceIfNew } from './dom.js';
import { whole } from './format.js';
import { groupArticle } from './groupArticle.js';
import { failuresIn, type GroupKind, type GroupOrder, selectGroups } from './selectGroups.js';

const PAGE = 12;
const FAILURES_SHOWN = 50;

/** The rollouts of reinforcement learning: groups with their rewards, trajectories, and what failed. */
export class Rollouts {
  readonly changes: Observable<unknown>;
  readonly #again = new Subject<void>();
  readonly #section = byId('rollouts');
  readonly #link = byId('to-rollouts');
  readonly #list = byId('rollout-list');
  readonly #run = byId<HTMLSelectElement>('rollout-run');
  readonly #kind = byId<HTMLSelectElement>('rollout-kind');
  readonly #order = byId<HTMLSelectElement>('rollout-order');
  readonly #hold = byId<HTMLInputElement>('rollout-hold');
  readonly #count = byId('rollout-count');
  readonly #back = byId<HTMLButtonElement>('rollout-back');
  readonly #next = byId<HTMLButtonElement>('rollout-next');
  #page = 0;
  #seen = -1;
  #held: readonly DashboardGroup[] | undefined;

  constructor() {
    const ask = (page: () => number) => () => {
      this.#page = page();
      this.#seen = -1;
      this.#again.next();
    };
    merge(...[this.#run, this.#kind, this.#order, this.#hold].map((input) => fromEvent(input, 'input'))).subscribe(
      ask(() => 0),
    );
    fromEvent(this.#back, 'click').subscribe(ask(() => this.#page - 1));
    fromEvent(this.#next, 'click').subscribe(ask(() => this.#page + 1));
    this.changes = this.#again;
  }

  render({ groups }: DashboardState): void {
    this.#section.hidden = this.#link.hidden = groups.length === 0;
    if (groups.version === this.#seen || (this.#hold.checked && this.#seen >= 0)) return;
    this.#seen = groups.version;
    this.#held = this.#hold.checked ? (this.#held ?? groups.toArray()) : undefined;
    const all = this.#held ?? groups.toArray();
    const runs = [...new Set(all.map(({ run }) => run))].sort();
    fillSelect(this.#run, [['', 'any'], ...runs.map((run) => [run, run] as const)]);
    this.#run.parentElement!.hidden = runs.length < 2;
    const found = selectGroups(all, {
      run: this.#run.value,
      kind: this.#kind.value as GroupKind,
      order: this.#order.value as GroupOrder,
    });
    this.#page = Math.max(0, Math.min(this.#page, Math.ceil(found.length / PAGE) - 1));
    const page = found.slice(this.#page * PAGE, (this.#page + 1) * PAGE);
    this.#back.hidden = this.#next.hidden = found.length <= PAGE;
    this.#back.disabled = this.#page === 0;
    this.#next.disabled = (this.#page + 1) * PAGE >= found.length;
    const first = this.#page * PAGE + 1;
    const among = found.length < all.length ? ` found in ${whole(all.length)}` : '';
    this.#count.textContent =
      found.length === 0
        ? `None of ${whole(all.length)} groups matches.`
        : `${whole(first)}–${whole(first + page.length - 1)} of ${whole(found.length)} groups${among}`;
    this.#showPage(page);
    this.#showFailures(all);
  }

  #showPage(page: readonly DashboardGroup[]): void {
    const there = new Map<string, Element>();
    for (const article of this.#list.children) there.set(article.getAttribute('data-key') ?? '', article);
    const keys = page.map(({ run, order, step, tries }) => JSON.stringify([run, order, step, tries.length]));
    // What is on the page already stays the element it is: a trajectory that is open stays open.
    replaceIfNew(this.#list, keys.join(), () =>
      page.map(
        (group, place) => (there.get(keys[place]!) as HTMLElement | undefined) ?? groupArticle(group, keys[place]!),
      ),
    );
  }

  #showFailures(all: readonly DashboardGroup[]): void {
    const failures = failuresIn(all);
    byId('rollout-failures').hidden = failures.length === 0;
    const key = JSON.stringify(failures.map(({ error, count }) => [error, count]));
    replaceIfNew(byId('rollout-failure-rows'), key, () =>
      failures
        .slice(0, FAILURES_SHOWN)
        .map(({ error, count, last }) =>
          make(
            'tr',
            {},
            cell('Times', 'number', whole(count)),
            cell('Error', 'wide bad', error),
            cell('Last seen', '', `step ${whole(last.step + 1)}, task ${whole(last.order)}`),
          ),
        ),
    );
  }
}
