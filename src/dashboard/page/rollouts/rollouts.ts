import { fromEvent, merge, type Observable } from 'rxjs';
import type { DashboardGroup } from '../../state/changes.js';
import type { DashboardState } from '../../state/DashboardState.js';
import { byId, cell, fillSelect, make, replaceIfNew } from '../dom.js';
import { whole } from '../format.js';
import { groupArticle } from './groupArticle.js';
import { Pages } from '../Pages.js';
import { failuresIn, type GroupKind, type GroupOrder, selectGroups } from './selectGroups.js';

const FAILURES_SHOWN = 50;

/** The rollouts of reinforcement learning: groups with their rewards, trajectories, and what failed. */
export class Rollouts {
  readonly changes: Observable<unknown>;
  readonly #run = byId<HTMLSelectElement>('rollout-run');
  readonly #kind = byId<HTMLSelectElement>('rollout-kind');
  readonly #order = byId<HTMLSelectElement>('rollout-order');
  readonly #pages: Pages<DashboardGroup>;

  constructor() {
    this.#pages = new Pages<DashboardGroup>('rollout', {
      ...{ size: 12, unit: ' groups' },
      asked: merge(...[this.#run, this.#kind, this.#order].map((input) => fromEvent(input, 'input'))),
      keyOf: ({ run, order, step, tries }) => JSON.stringify([run, order, step, tries.length]),
      article: groupArticle,
    });
    this.changes = this.#pages.changes;
  }

  render({ groups }: DashboardState): void {
    byId('rollouts').hidden = byId('to-rollouts').hidden = groups.length === 0;
    this.#pages.render(
      String(groups.version),
      () => groups.toArray(),
      (all) => {
        const runs = [...new Set(all.map(({ run }) => run))].sort();
        fillSelect(this.#run, [['', 'any'], ...runs.map((run) => [run, run] as const)]);
        this.#run.parentElement!.hidden = runs.length < 2;
        showFailures(all);
        return selectGroups(all, {
          run: this.#run.value,
          kind: this.#kind.value as GroupKind,
          order: this.#order.value as GroupOrder,
        });
      },
    );
  }
}

function showFailures(all: readonly DashboardGroup[]): void {
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
          cell('Last seen', '', `step ${whole(last.step + 1)}, task ${whole(last.order + 1)}`),
        ),
      ),
  );
}
