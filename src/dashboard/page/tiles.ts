import type { BudgetUse } from '../state/changes.js';
import type { DashboardState } from '../state/DashboardState.js';
import type { Series } from '../state/Series.js';
import { byId, make, meter, patch } from './dom.js';
import { bytes, number, rewardIn, runColour, shortName, VALIDATION, whole } from './format.js';
import { swatch } from './runs.js';

const SECONDS = 10;

/** The numbers of this moment: those of the run with the newest step, under its name, and those of all runs together. */
export function renderTiles(state: DashboardState, nowMs: number): void {
  const runs = [...state.runs.values()];
  const lastStepMs = runs.map(({ series }) => series.last('atMs') ?? 0);
  const place = lastStepMs.lastIndexOf(Math.max(...lastStepMs));
  const run = runs[place];
  byId('newest').hidden = run === undefined;
  if (run !== undefined) {
    const others = runs.length > 1 ? [make('small', {}, ` the newest step of ${whole(runs.length)} runs`)] : [];
    const name = make('span', {}, swatch(runColour(place)), shortName(run.name));
    patch(byId('newest'), [name, ...others]);
    byId('newest').title = run.name;
  }
  patch(byId('run-tiles'), runTiles(run?.series));
  const shared = clientTiles(state, nowMs);
  byId('all').hidden = run === undefined || shared.length === 0;
  patch(byId('tiles'), shared);
}

function runTiles(series: Series | undefined): HTMLElement[] {
  const reward = rewardIn(series?.names ?? []);
  // A run of which only the events tell has no loss; before there is a run, all places are shown.
  const known = (name: string) =>
    series === undefined || series.length === 0 || series.column(name) !== undefined
      ? number(series?.last(name))
      : undefined;
  const some = (name: string) => (series?.last(name) === undefined ? undefined : number(series.last(name)));
  const [usd, tokens] = [series?.last('cost/usd'), series?.last('cost/tokens')];
  const counted = tokens === undefined ? undefined : `${whole(tokens)} tokens`;
  return [
    ...tile('Step', series?.lastIndex === undefined ? '–' : whole(series.lastIndex + 1)),
    ...tile('Loss', known('loss')),
    ...tile('Validation loss', some(VALIDATION)),
    ...tile('Reward', reward === undefined ? undefined : some(reward)),
    ...tile('Learning rate', known('learningRate')),
    ...tile('Cost', usd === undefined ? counted : `$${usd.toFixed(4)}`),
    ...tile('Tokens/s', known('tokensPerSecond')),
    ...tile('Cycles/step', some('cycles')),
  ];
}

function clientTiles(state: DashboardState, nowMs: number): HTMLElement[] {
  const { events, samples } = state;
  const counted = samples.length === 0 ? [] : tile('Samples', whole(samples.last!.id + 1));
  // A log has steps and samples; only the client knows what happens between it and the service.
  if (events.load === undefined && Object.keys(events.counts).length === 0) return counted;
  const retries = (events.counts['request-retry'] ?? 0) + (events.counts['sample-resubmitted'] ?? 0);
  const failed = events.failures.length;
  return [
    ...counted,
    ...tile('Samples/s', number(samplesPerSecond(state, nowMs))),
    ...tile('In flight', whole(events.load?.calls ?? events.requests.size)),
    ...bytesTile(state),
    ...tile('Retries', whole(retries)),
    ...tile('Errors', whole(failed), failed > 0 ? 'bad' : ''),
  ];
}

/** Against the budget that is fullest; the others are told of where the waiting is. */
function bytesTile({ events }: DashboardState): HTMLElement[] {
  const budgets = events.load?.budgets;
  if (budgets === undefined) return tile('Bytes in flight', bytes(events.bytesAccepted));
  const share = ({ inUse, size }: BudgetUse) => inUse / size;
  const fullest = [budgets.sampleBytes, budgets.trainingBytes, budgets.resultBytes].reduce((most, each) =>
    share(each) > share(most) ? each : most,
  );
  const small = make('small', {}, ` of ${bytes(fullest.size)}`);
  return tile('Bytes in flight', bytes(fullest.inUse), '', [small], meter(Math.min(1, share(fullest))));
}

/** A tile; none if there is no text. */
function tile(
  name: string,
  text: string | undefined,
  style = '',
  beside: readonly HTMLElement[] = [],
  ...below: readonly HTMLElement[]
): HTMLElement[] {
  if (text === undefined) return [];
  const value = make('dd', style === '' ? {} : { class: style }, text, ...beside);
  return [make('div', { 'data-tile': name }, make('dt', {}, name), value, ...below)];
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
