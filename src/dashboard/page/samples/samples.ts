import { debounceTime, fromEvent, merge, type Observable } from 'rxjs';
import type { DashboardSample } from '../../state/changes.js';
import type { DashboardState } from '../../state/DashboardState.js';
import { byId, fillSelect } from '../dom.js';
import { Pages } from '../Pages.js';
import { sampleArticle } from './sampleArticle.js';
import { select, type SampleOrder } from './selectSamples.js';
import { TokenTip } from './TokenTip.js';

/** The samples: searched, filtered, ordered, a page at a time. */
export class Samples {
  readonly changes: Observable<unknown>;
  readonly #search = byId<HTMLInputElement>('search');
  readonly #run = byId<HTMLSelectElement>('sample-run');
  readonly #stop = byId<HTMLSelectElement>('sample-stop');
  readonly #order = byId<HTMLSelectElement>('sample-order');
  readonly #legend = byId('legend');
  readonly #pages: Pages<DashboardSample>;

  constructor() {
    const text = () => this.#search.value.trim().toLowerCase();
    this.#pages = new Pages<DashboardSample>('sample', {
      ...{ size: 20, unit: ' samples' },
      asked: merge(
        fromEvent(this.#search, 'input').pipe(debounceTime(150)),
        ...[this.#run, this.#stop, this.#order].map((input) => fromEvent(input, 'input')),
      ),
      keyOf: ({ id }) => `${id} ${text()}`,
      article: (sample, key) => sampleArticle(sample, text(), key),
    });
    new TokenTip(this.#pages.list);
    this.changes = this.#pages.changes;
  }

  render({ samples }: DashboardState): void {
    this.#pages.render(
      `${samples.length} ${samples.last?.id ?? ''}`,
      () => samples.toArray(),
      (all) => {
        this.#fill(all);
        return select(all, {
          text: this.#search.value,
          run: this.#run.value,
          stop: this.#stop.value,
          order: this.#order.value as SampleOrder,
        });
      },
    );
  }

  #fill(all: readonly DashboardSample[]): void {
    // No samples need no key to their colours.
    this.#legend.hidden = all.length === 0;
    const runs = [...new Set(all.map(({ run }) => run ?? ''))].filter((run) => run !== '').sort();
    fillSelect(this.#run, [['', 'any'], ...runs.map((run) => [run, run] as const)]);
    this.#run.parentElement!.hidden = runs.length === 0;
    const stops = [...new Set(all.map(({ stopReason }) => stopReason ?? ''))].filter((stop) => stop !== '').sort();
    fillSelect(this.#stop, [['', 'any'], ...stops.map((stop) => [stop, stop] as const)]);
    const rewarded = all.some(({ reward }) => reward !== undefined);
    for (const option of this.#order.options) {
      option.hidden = !rewarded && (option.value === 'best' || option.value === 'worst');
    }
  }
}
