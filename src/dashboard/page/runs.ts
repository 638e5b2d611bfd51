import { Subject } from 'rxjs';
import type { DashboardState, RunState } from '../state/DashboardState.js';
import { byId, cell, make, patch } from './dom.js';
import { number, rewardIn, runColour, shortName, VALIDATION, whole } from './format.js';
import { differences } from './options.js';

/** All runs: their colours, their newest numbers, the options in which they differ, and which of them are drawn. */
export class Runs {
  readonly changes = new Subject<void>();
  readonly #hidden = new Set<string>();
  readonly #head = byId('run-head');
  readonly #rows = byId('run-rows');

  constructor() {
    this.#rows.addEventListener('change', ({ target }) => {
      const box = target as HTMLInputElement;
      // The table is compared with what it should be by attributes.
      box.toggleAttribute('checked', box.checked);
      if (box.checked) this.#hidden.delete(box.value);
      else this.#hidden.add(box.value);
      this.changes.next();
    });
  }

  render(state: DashboardState, nowMs: number): void {
    const runs = [...state.runs.values()];
    byId('runs').hidden = runs.length === 0;
    const options = differences(runs.map(({ config }) => config));
    const latest = (title: string, name: (run: RunState) => string | undefined) => ({
      title,
      values: runs.map((run) => run.series.last(name(run) ?? '')),
    });
    const numbers = [
      latest('Loss', () => 'loss'),
      latest('Validation loss', () => VALIDATION),
      latest('Reward', ({ series }) => rewardIn(series.names)),
    ].filter(({ values }) => values.some((value) => value !== undefined));
    patch(this.#head, [
      make('th', { scope: 'col' }, 'Run'),
      make('th', { scope: 'col' }, 'State'),
      ...['Steps', ...numbers.map(({ title }) => title)].map((title) =>
        make('th', { scope: 'col', class: 'number' }, title),
      ),
      ...options.map(({ name }) => make('th', { scope: 'col', class: 'option' }, name)),
    ]);
    patch(
      this.#rows,
      runs.map((run, place) =>
        make(
          'tr',
          { 'data-run': run.name },
          cell('Run', 'name', this.#label(run.name, place)),
          cell('State', run.status === 'failed' ? 'wide bad' : 'wide', stateOf(run, nowMs)),
          cell('Steps', 'number', whole((run.series.lastIndex ?? -1) + 1)),
          ...numbers.map(({ title, values }) => cell(title, 'number', number(values[place]))),
          ...options.map(({ name, values }) => cell(name, 'option', values[place] ?? '–')),
        ),
      ),
    );
  }

  shown({ runs }: DashboardState): { readonly run: RunState; readonly colour: string }[] {
    return [...runs.values()]
      .map((run, place) => ({ run, colour: runColour(place) }))
      .filter(({ run }) => !this.#hidden.has(run.name));
  }

  #label(name: string, place: number): HTMLElement {
    const checked: Record<string, string> = this.#hidden.has(name) ? {} : { checked: '' };
    const box = make('input', { type: 'checkbox', value: name, ...checked });
    return make('label', { title: name }, box, swatch(runColour(place)), shortName(name));
  }
}

/** A short line in the colour of a curve. */
export function swatch(colour: string): HTMLElement {
  const element = make('span', { class: 'swatch' });
  element.style.background = colour;
  return element;
}

const stateOf = (run: RunState, nowMs: number): string =>
  run.status === 'failed' ? `failed: ${run.message ?? ''}` : run.hasEnded(nowMs) ? 'ended' : 'running';
