import type { BudgetUse } from '../state/changes.js';
import type { DashboardState } from '../state/DashboardState.js';
import { byId, make } from './dom.js';
import { bytes, number, REWARD, whole } from './format.js';
import { meter } from './meter.js';

const SECONDS = 10;
/** In pixels. */
const NARROWEST = 145;

/** The numbers of this moment. */
export class Tiles {
  readonly #list = byId('tiles');
  readonly #values = new Map<string, { readonly tile: HTMLElement; readonly value: HTMLElement }>();

  render(state: DashboardState, nowMs: number): void {
    const { runs, events } = state;
    // Of several runs, the one with the newest step.
    const newest = [...runs.values()].reduce<{
      atMs: number;
      run?: typeof runs extends Map<string, infer R> ? R : never;
    }>(
      (best, run) => {
        const atMs = run.series.last('atMs') ?? 0;
        return atMs >= best.atMs ? { atMs, run } : best;
      },
      { atMs: -1 },
    );
    const series = newest.run?.series;
    // Of all trajectories if there is such a one; others are parts and kinds.
    const rewards = series?.names.filter((name) => /reward/i.test(name)) ?? [];
    const reward = rewards.includes(REWARD) ? REWARD : rewards[0];
    this.#show('Step', series?.lastIndex === undefined ? '–' : whole(series.lastIndex));
    // A run of which only the events tell has no loss; before there is a run, all places are shown.
    const known = (name: string) =>
      series === undefined || series.length === 0 || series.column(name) !== undefined
        ? number(series?.last(name))
        : undefined;
    this.#show('Loss', known('loss'));
    this.#show('Reward', reward === undefined ? undefined : number(series?.last(reward)));
    this.#show('Learning rate', known('learningRate'));
    const usd = series?.last('cost/usd');
    const tokens = series?.last('cost/tokens');
    const counted = tokens === undefined ? undefined : `${whole(tokens)} tokens`;
    this.#show('Cost', usd === undefined ? counted : `$${usd.toFixed(4)}`);
    this.#show('Tokens/s', known('tokensPerSecond'));
    // A log has steps and samples; only the client knows what happens between it and the service.
    const live = events.load !== undefined || Object.keys(events.counts).length > 0;
    this.#show('Samples', state.samples.length === 0 ? undefined : whole(state.samples.last!.id + 1));
    this.#show('Samples/s', live ? number(samplesPerSecond(state, nowMs)) : undefined);
    this.#show('Cycles/step', series?.column('cycles') === undefined ? undefined : number(series.last('cycles')));
    this.#show('In flight', live ? whole(events.load?.calls ?? events.requests.size) : undefined);
    if (live) this.#showBytes(state);
    else this.#show('Bytes in flight', undefined);
    const retries = (events.counts['request-retry'] ?? 0) + (events.counts['sample-resubmitted'] ?? 0);
    this.#show('Retries', live ? whole(retries) : undefined);
    this.#show('Errors', live ? whole(events.failures.length) : undefined, events.failures.length > 0 ? 'bad' : '');
    this.#layOut();
  }

  /** As few rows as there is room for, and as many in each: the last is not left with one. */
  #layOut(): void {
    const { length } = [...this.#values.values()].filter(({ tile }) => !tile.hidden);
    const most = Math.max(2, Math.floor(this.#list.clientWidth / NARROWEST));
    const columns = Math.ceil(length / Math.ceil(length / most));
    const template = `repeat(${columns}, minmax(0, 1fr))`;
    if (this.#list.style.gridTemplateColumns !== template) this.#list.style.gridTemplateColumns = template;
  }

  /** Against the budget that is fullest; the others are told of where the waiting is. */
  #showBytes({ events }: DashboardState): void {
    const budgets = events.load?.budgets;
    if (budgets === undefined) {
      this.#show('Bytes in flight', bytes(events.bytesAccepted));
      return;
    }
    const { sampleBytes, trainingBytes, resultBytes } = budgets;
    const share = ({ inUse, size }: BudgetUse) => inUse / size;
    const fullest = [sampleBytes, trainingBytes, resultBytes].reduce((most, each) =>
      share(each) > share(most) ? each : most,
    );
    this.#show('Bytes in flight', bytes(fullest.inUse), '', ` of ${bytes(fullest.size)}`);
    const { tile } = this.#values.get('Bytes in flight')!;
    tile.querySelector('progress')?.remove();
    tile.append(meter(Math.min(1, share(fullest))));
  }

  #show(name: string, text: string | undefined, style = '', small = ''): void {
    let shown = this.#values.get(name);
    if (shown === undefined) {
      const value = make('dd');
      shown = { value, tile: make('div', { 'data-tile': name }, make('dt', {}, name), value) };
      this.#values.set(name, shown);
      this.#list.append(shown.tile);
    }
    shown.tile.hidden = text === undefined;
    if (text !== undefined && shown.value.textContent !== text + small) {
      shown.value.replaceChildren(text, ...(small === '' ? [] : [make('small', {}, small)]));
    }
    shown.value.className = style;
  }
}

/** Over the last ten whole seconds. */
function samplesPerSecond({ events: { clock } }: DashboardState, nowMs: number): number {
  const end = Math.floor(nowMs / 1000);
  const column = clock.column('samples') ?? clock.column('requests');
  let sum = 0;
  for (let row = clock.lowerBound(end - SECONDS); column !== undefined && row < clock.length; row++) {
    if (clock.index[row]! < end) sum += column[row]! || 0;
  }
  return sum / SECONDS;
}
