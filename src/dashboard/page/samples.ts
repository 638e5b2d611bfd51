import { debounceTime, fromEvent, merge, type Observable, Subject } from 'rxjs';
import type { DashboardSample } from '../state/changes.js';
import type { DashboardState } from '../state/DashboardState.js';
import { byId, fillSelect, replaceIfNew } from './dom.js';
import { whole } from './format.js';
import { sampleArticle } from './sampleArticle.js';
import { select, type SampleOrder } from './selectSamples.js';
import { TokenTip } from './TokenTip.js';

const PAGE = 20;

/** The samples: searched, filtered, ordered, a page at a time. */
export class Samples {
  readonly changes: Observable<unknown>;
  readonly #again = new Subject<void>();
  readonly #list = byId('sample-list');
  readonly #search = byId<HTMLInputElement>('search');
  readonly #run = byId<HTMLSelectElement>('sample-run');
  readonly #stop = byId<HTMLSelectElement>('sample-stop');
  readonly #order = byId<HTMLSelectElement>('sample-order');
  readonly #hold = byId<HTMLInputElement>('sample-hold');
  readonly #count = byId('sample-count');
  readonly #legend = byId('legend');
  readonly #back = byId<HTMLButtonElement>('sample-back');
  readonly #next = byId<HTMLButtonElement>('sample-next');
  #page = 0;
  #held: readonly DashboardSample[] | undefined;
  #seen = '';
  #shown = new Map<number, DashboardSample>();

  constructor() {
    new TokenTip(this.#list, (id) => this.#shown.get(id));
    const asked = merge(
      fromEvent(this.#search, 'input').pipe(debounceTime(150)),
      ...[this.#run, this.#stop, this.#order, this.#hold].map((input) => fromEvent(input, 'input')),
    );
    asked.subscribe(() => {
      this.#page = 0;
      this.#seen = '';
      this.#again.next();
    });
    const turn = (by: number) => () => {
      this.#page += by;
      this.#seen = '';
      this.#again.next();
    };
    fromEvent(this.#back, 'click').subscribe(turn(-1));
    fromEvent(this.#next, 'click').subscribe(turn(1));
    this.changes = this.#again;
  }

  render(state: DashboardState): void {
    // Ten thousand samples are looked through only when there are new ones, or something else is asked for.
    const seen = `${state.samples.length} ${state.samples.last?.id ?? ''}`;
    if (seen === this.#seen || (this.#hold.checked && this.#seen !== '')) return;
    this.#seen = seen;
    this.#held = this.#hold.checked ? (this.#held ?? state.samples.toArray()) : undefined;
    const all = this.#held ?? state.samples.toArray();
    this.#fill(all);
    const found = select(all, {
      text: this.#search.value,
      run: this.#run.value,
      stop: this.#stop.value,
      order: this.#order.value as SampleOrder,
    });
    this.#page = Math.max(0, Math.min(this.#page, Math.ceil(found.length / PAGE) - 1));
    const page = found.slice(this.#page * PAGE, (this.#page + 1) * PAGE);
    // One page needs no turning, and no samples no key to their colours.
    this.#back.hidden = this.#next.hidden = found.length <= PAGE;
    this.#legend.hidden = all.length === 0;
    this.#back.disabled = this.#page === 0;
    this.#next.disabled = (this.#page + 1) * PAGE >= found.length;
    const first = this.#page * PAGE + 1;
    this.#count.textContent =
      found.length === 0
        ? all.length === 0
          ? 'No samples yet.'
          : `None of ${whole(all.length)} samples matches.`
        : `${whole(first)}–${whole(first + page.length - 1)} of ${whole(found.length)}${found.length < all.length ? ` found in ${whole(all.length)}` : ''}`;
    this.#shown = new Map(page.map((sample) => [sample.id, sample]));
    const text = this.#search.value.trim().toLowerCase();
    const there = new Map<string, Element>();
    for (const article of this.#list.children) there.set(article.getAttribute('data-key') ?? '', article);
    // What is on the page already stays the element it is: focus, scrolling and open texts stay with it.
    replaceIfNew(this.#list, JSON.stringify([text, page.map(({ id }) => id)]), () =>
      page.map(
        (sample) => (there.get(`${sample.id} ${text}`) as HTMLElement | undefined) ?? sampleArticle(sample, text),
      ),
    );
  }

  #fill(all: readonly DashboardSample[]): void {
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
