import { Subject } from 'rxjs';
import type { DashboardState, RunState } from '../state/DashboardState.js';
import { byId, make, replaceIfNew } from './dom.js';
import { shortName, whole } from './format.js';

const COLOURS = 6;

/** Which runs there are, their colours, and which of them are shown. */
export class Runs {
  readonly changes = new Subject<void>();
  readonly #hidden = new Set<string>();
  readonly #list = byId('runs');

  render({ runs }: DashboardState): void {
    const key = JSON.stringify([...runs.values()].map(({ name, status, message }) => [name, status, message]));
    replaceIfNew(this.#list, key, () => [...runs.values()].map((run, place) => this.#entry(run, place)));
    // Lengths change all the time: they are written into the existing elements.
    for (const run of runs.values()) {
      const count = this.#list.querySelector(`[data-run="${CSS.escape(run.name)}"]`);
      if (count !== null) count.textContent = `${whole((run.series.lastIndex ?? -1) + 1)} steps`;
    }
  }

  shown({ runs }: DashboardState): { readonly run: RunState; readonly colour: string }[] {
    return [...runs.values()]
      .map((run, place) => ({ run, colour: `run${place % COLOURS}` }))
      .filter(({ run }) => !this.#hidden.has(run.name));
  }

  #entry({ name, status, message }: RunState, place: number): HTMLElement {
    const box = make('input', { type: 'checkbox' });
    box.checked = !this.#hidden.has(name);
    box.addEventListener('change', () => {
      if (box.checked) this.#hidden.delete(name);
      else this.#hidden.add(name);
      this.changes.next();
    });
    const swatch = make('span', { class: 'swatch' });
    swatch.style.background = `var(--run${place % COLOURS})`;
    const said = make(
      'span',
      { class: `status ${status}` },
      ` · ${status === 'logged' ? 'from its log' : status}${message === undefined ? '' : `: ${message}`}`,
    );
    const count = make('span', { class: 'status', 'data-run': name });
    return make('li', { title: name }, make('label', {}, box, swatch, shortName(name), ' ', count, said));
  }
}
