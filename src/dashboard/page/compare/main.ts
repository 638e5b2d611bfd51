import type { EvalComparison } from '../../../evals/statistics/compareEvals.js';
import { byId, drawing, make } from '../dom.js';
import { theme } from '../theme.js';

interface Said {
  readonly score: number;
  readonly output: string;
}
interface Pair {
  readonly id: string;
  readonly difference: number;
  readonly input: string;
  readonly expected: string | null;
  readonly before: readonly Said[];
  readonly after: readonly Said[];
}
/** An end that is infinite comes as null. */
interface Interval {
  readonly mean: number | null;
  readonly low: number | null;
  readonly high: number | null;
}
interface Comparison extends Omit<EvalComparison, 'before' | 'after' | 'difference' | 'regressions' | 'improvements'> {
  readonly error?: string;
  readonly before: Interval;
  readonly after: Interval;
  readonly difference: Interval;
  readonly differences: readonly { readonly name: string; readonly before: string; readonly after: string }[];
  readonly regressions: readonly Pair[];
  readonly improvements: readonly Pair[];
}

const VERDICTS = {
  better: 'The second is better.',
  worse: 'The second is worse.',
  same: 'No difference was found.',
  'too-few': 'There are too few examples to tell.',
} as const;

const [before, after] = [byId<HTMLSelectElement>('before'), byId<HTMLSelectElement>('after')];
theme();
byId<HTMLAnchorElement>('to-runs').href = `./${location.search}`;

const KINDS = ['changes', 'regressions', 'improvements'] as const;
const TITLES = { changes: 'Changed', regressions: 'Regressed', improvements: 'Improved' } as const;
let shown: Comparison | undefined;
let which: (typeof KINDS)[number] = 'changes';
let asked = 0;

async function ask<T>(path: string): Promise<T> {
  const url = new URL(path, location.href);
  url.searchParams.set('token', new URLSearchParams(location.search).get('token') ?? '');
  return (await fetch(url)).json() as Promise<T>;
}

const say = (text: string) => {
  byId('message').textContent = text;
  byId('message').hidden = text === '';
};
const number = (value: number | null, digits = 3): string =>
  value === null ? '∞' : value.toFixed(digits).replace('-', '−');
const signed = (value: number | null): string => `${value !== null && value > 0 ? '+' : ''}${number(value)}`;

async function compare(): Promise<void> {
  const mine = ++asked;
  say('comparing');
  const found = await ask<Comparison>(`compare/data?before=${before.value}&after=${after.value}`);
  // Somebody has chosen others meanwhile.
  if (mine !== asked) return;
  byId('shown').hidden = found.error !== undefined || found.examples === 0;
  if (found.error !== undefined) return say(found.error);
  say(found.examples === 0 ? 'These two have no example in common that has a score in both.' : '');
  shown = found;
  render(found);
}

function render(found: Comparison): void {
  const tile = (name: string, text: string) =>
    make('div', { 'data-tile': name }, make('dt', {}, name), make('dd', {}, text));
  byId('tiles').replaceChildren(
    tile('Before', number(found.before.mean)),
    tile('After', number(found.after.mean)),
    tile('Difference', signed(found.difference.mean)),
    tile('Improved', String(found.improved)),
    tile('Regressed', String(found.regressed)),
    tile('The same', String(found.same)),
    tile('Errored', String(found.errored)),
  );
  const verdict = byId('verdict');
  verdict.dataset['verdict'] = found.verdict;
  const test = found.test === 'mcnemar' ? 'McNemar' : 'paired t';
  verdict.textContent = `${VERDICTS[found.verdict]} ${test}: p = ${found.pValue.toPrecision(3)}`;
  drawInterval(found.difference);
  byId('warnings').replaceChildren(
    ...found.differences.map((each) =>
      make('li', { class: 'warn' }, `${each.name} differs: ${each.before} before, ${each.after} after`),
    ),
  );
  renderPairs();
}

function drawInterval({ mean, low, high }: Interval): void {
  const [from, to] = [low ?? -1, high ?? 1];
  const most = 1.15 * Math.max(Math.abs(from), Math.abs(to), 0.01);
  // As wide as there is room, so that its texts are not scaled.
  const width = Math.min(600, byId('interval').clientWidth);
  const x = (value: number) => width / 2 + ((width / 2 - 30) * value) / most;
  const svg = drawing('svg', { viewBox: `0 0 ${width} 50` });
  svg.append(
    drawing('line', { class: 'axis', x1: 10, x2: width - 10, y1: 20, y2: 20 }),
    drawing('line', { class: 'zero', x1: width / 2, x2: width / 2, y1: 4, y2: 36 }),
    drawing('line', { class: 'range', x1: x(from), x2: x(to), y1: 20, y2: 20 }),
    drawing('circle', { class: 'mean', cx: x(mean ?? 0), cy: 20, r: 6 }),
    drawing('text', { x: x(from), y: 46, 'text-anchor': 'middle' }, signed(low)),
    drawing('text', { x: x(to), y: 46, 'text-anchor': 'middle' }, signed(high)),
  );
  byId('interval').setAttribute('aria-label', `difference ${signed(mean)}, from ${signed(low)} to ${signed(high)}`);
  byId('interval').replaceChildren(svg);
}

function renderPairs(): void {
  const { regressions = [], improvements = [], regressed = 0, improved = 0 } = shown ?? {};
  const counts = { changes: regressed + improved, regressions: regressed, improvements: improved };
  for (const name of KINDS) {
    byId(`show-${name}`).setAttribute('aria-pressed', String(name === which));
    byId(`show-${name}`).textContent = `${TITLES[name]} ${counts[name]}`;
  }
  const all = { changes: [...regressions, ...improvements], regressions, improvements };
  const side = (title: string, samples: readonly Said[]) =>
    make(
      'div',
      {},
      make('h4', {}, `${title}: ${number(samples.reduce((sum, { score }) => sum + score, 0) / samples.length, 2)}`),
      ...samples.map(({ output }) => make('pre', {}, output)),
    );
  const pairs = all[which].map((pair) =>
    make(
      'article',
      { class: 'pair' },
      make(
        'h3',
        { class: pair.difference < 0 ? 'bad' : 'good' },
        `${pair.id}: ${pair.difference < 0 ? 'worse' : 'better'} by ${number(Math.abs(pair.difference), 2)}`,
      ),
      make('div', { class: 'asked' }, pair.input),
      ...(pair.expected === null ? [] : [make('div', { class: 'asked' }, `expected: ${pair.expected}`)]),
      make('div', { class: 'sides' }, side('before', pair.before), side('after', pair.after)),
    ),
  );
  byId('pairs').replaceChildren(...(pairs.length === 0 ? [make('p', {}, 'none')] : pairs));
}

for (const name of KINDS) {
  byId(`show-${name}`).addEventListener('click', () => {
    which = name;
    renderPairs();
  });
}
for (const select of [before, after]) select.addEventListener('change', () => void compare());

async function start(): Promise<void> {
  const files =
    await ask<readonly { readonly name: string; readonly model?: string; readonly writtenMs: number }[]>(
      'compare/list',
    );
  if (files.length < 2)
    return say('There are no two result files to compare: start the dashboard with --evals <folder>.');
  byId('files').hidden = false;
  const option = ({ name, model }: (typeof files)[number], place: number) =>
    make('option', { value: String(place) }, model === undefined ? name : `${name} (${model})`);
  before.replaceChildren(...files.map(option));
  after.replaceChildren(...files.map(option));
  // The newest results against those before them.
  const byAge = files.map((_, place) => place).sort((a, b) => files[b]!.writtenMs - files[a]!.writtenMs || b - a);
  after.value = String(byAge[0]);
  before.value = String(byAge[1]);
  await compare();
}
void start();
