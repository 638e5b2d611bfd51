import { fromEvent, merge, type Observable, Subject } from 'rxjs';
import { align, type Curve, smooth } from '../state/align.js';
import type { DashboardState } from '../state/DashboardState.js';
import { Chart, type ChartOptions, type Line, type Picture } from './Chart.js';
import { byId, fillSelect, make } from './dom.js';
import { bytes, mark, number, REWARD, shortName, VALIDATION } from './format.js';
import type { Runs } from './runs.js';
import { colour as styled } from './theme.js';

/** Columns that are drawn elsewhere, or not as a curve. */
const NAMED = ['loss', 'learningRate', 'tokensPerSecond', 'cycles', 'atMs', 'policy/age_max'];
const WINDOWS = [
  ['0', 'all steps'],
  ['100', 'last 100'],
  ['1000', 'last 1,000'],
  ['10000', 'last 10,000'],
] as const;
const SECONDS_SHOWN = 600;

type Range = readonly [from: number, to: number];
type Plan = { readonly chart: Chart; readonly picture: (state: DashboardState, points: number) => Picture | undefined };

/** All curves. Drawn one a frame, and only those in sight, so that no frame has much to do. */
export class Curves {
  readonly changes: Observable<unknown>;
  readonly #again = new Subject<void>();
  readonly #runs: Runs;
  readonly #plans: Plan[] = [];
  readonly #dirty = new Set<Plan>();
  readonly #window = byId<HTMLSelectElement>('window');
  readonly #smoothing = byId<HTMLInputElement>('smoothing');
  readonly #logarithmic = byId<HTMLInputElement>('logarithmic');
  readonly #unzoom = byId<HTMLButtonElement>('unzoom');
  readonly #reward = make('select', { 'aria-label': 'Which reward' });
  readonly #evaluation = make('select', { 'aria-label': 'Which evaluation' });
  readonly #other = make('select', { 'aria-label': 'Which metric' });
  #zoom: Range | undefined;
  #theme = '';
  #state: DashboardState | undefined;
  #scheduled = false;

  constructor(runs: Runs) {
    this.#runs = runs;
    fillSelect(this.#window, WINDOWS);
    this.#addSteps('Loss', () => 'loss', { atFirst: true, logarithmic: () => this.#logarithmic.checked });
    this.#addSteps('Validation loss', () => VALIDATION, { raw: true, logarithmic: () => this.#logarithmic.checked });
    this.#addSteps('Reward', () => this.#reward.value, { control: this.#reward });
    this.#addSteps('Age of weights', () => 'policy/age_max', { raw: true });
    this.#addSteps('Evaluation', () => this.#evaluation.value, { control: this.#evaluation, raw: true });
    this.#addSteps('Learning rate', () => 'learningRate', { raw: true });
    this.#addSteps('Tokens per second', () => 'tokensPerSecond');
    this.#addClock('Samples per second', number, ({ events }) => [
      ['samples', events.clock.column('samples') ? 'samples' : 'requests'],
    ]);
    this.#addClock('Bytes in flight', bytes, () => [
      ['not answered', 'bytes'],
      ['being sent', 'sending'],
    ]);
    this.#addSteps('Cycles per step', () => 'cycles');
    this.#addSteps('Metric', () => this.#other.value, { control: this.#other });
    const sight = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        const plan = this.#plans.find(({ chart }) => chart.element === target)!;
        plan.chart.visible = isIntersecting;
        if (isIntersecting) this.#mark(plan);
      }
    });
    for (const { chart } of this.#plans) sight.observe(chart.element);
    byId('charts').append(...this.#plans.map(({ chart }) => chart.element));
    this.changes = merge(
      this.#again,
      fromEvent(this.#unzoom, 'click', () => this.#setZoom(undefined)),
      ...[this.#window, this.#smoothing, this.#logarithmic, this.#reward, this.#evaluation, this.#other].map((input) =>
        fromEvent(input, 'input'),
      ),
    );
  }

  render(state: DashboardState, theme: string): void {
    this.#state = state;
    this.#theme = theme;
    const names = [...new Set([...state.runs.values()].flatMap(({ series }) => series.names))].sort();
    const evaluations = names.filter((name) => name.startsWith('eval/') && name !== VALIDATION);
    // The reward of all trajectories first, then its parts and kinds.
    const rewards = names
      .filter((name) => /reward/i.test(name) && !evaluations.includes(name))
      .sort((a, b) => Number(b === REWARD) - Number(a === REWARD));
    // Sorting keeps the order of those that are alike.
    const others = names
      .filter((name) => ![...NAMED, VALIDATION, ...rewards, ...evaluations].includes(name))
      .sort((a, b) => interest(b) - interest(a));
    const fill = (select: HTMLSelectElement, columns: readonly string[]) =>
      fillSelect(
        select,
        columns.map((name) => [name, name]),
      );
    fill(this.#reward, rewards);
    fill(this.#evaluation, evaluations);
    fill(this.#other, others);
    this.#unzoom.hidden = this.#zoom === undefined;
    for (const plan of this.#plans) this.#mark(plan);
  }

  #mark(plan: Plan): void {
    this.#dirty.add(plan);
    if (this.#scheduled || this.#state === undefined) return;
    this.#scheduled = true;
    requestAnimationFrame(() => this.#drawNext());
  }

  #drawNext(): void {
    this.#scheduled = false;
    const state = this.#state!;
    for (const plan of this.#dirty) {
      this.#dirty.delete(plan);
      const { chart, picture } = plan;
      const drawn = picture(state, Math.max(200, chart.width));
      chart.element.hidden = drawn === undefined;
      if (drawn === undefined || (!chart.visible && chart.theme === this.#theme)) continue;
      chart.draw(drawn, this.#theme);
      break;
    }
    if (this.#dirty.size === 0) return;
    this.#scheduled = true;
    requestAnimationFrame(() => this.#drawNext());
  }

  #setZoom(range: Range | undefined): void {
    this.#zoom = range;
    this.#again.next();
  }

  #addSteps(
    title: string,
    column: () => string,
    {
      control,
      atFirst = false,
      raw = false,
      logarithmic = () => false,
    }: {
      readonly control?: HTMLElement;
      /** Shown also before anything is: the place where curves will be. */
      readonly atFirst?: boolean;
      readonly raw?: boolean;
      readonly logarithmic?: () => boolean;
    } = {},
  ): void {
    const options: ChartOptions = {
      title,
      axis: 'step',
      format: number,
      mark,
      sync: 'steps',
      onZoom: (range) => this.#setZoom(range),
      ...(control === undefined ? {} : { control }),
    };
    const picture = (state: DashboardState, points: number): Picture | undefined => {
      const name = column();
      const runs = this.#runs.shown(state).filter(({ run }) => run.series.column(name) !== undefined);
      const nothingYet = [...state.runs.values()].every(({ series }) => series.length === 0);
      if (runs.length === 0 && !(atFirst && nothingYet)) return undefined;
      const weight = raw ? 0 : Number(this.#smoothing.value);
      const log = logarithmic();
      const lines: Line[] = [];
      const curves: Curve[] = [];
      for (const { run, colour } of runs) {
        const x = run.series.index;
        const y = log ? run.series.column(name)!.map((value) => (value > 0 ? value : NaN)) : run.series.column(name)!;
        const calm = smooth(y, weight);
        if (weight > 0) {
          lines.push({ label: shortName(run.name), colour, faint: true });
          curves.push({ x, y });
        }
        lines.push({ label: shortName(run.name), colour, latest: calm.findLast((value) => !Number.isNaN(value)) });
        curves.push({ x, y: calm });
      }
      // People count steps from 1.
      const [from, to] = this.#range(state);
      const { x, ys } = align(curves, from - 1, to - 1, points);
      return { lines, data: { x: x.map((index) => index + 1), ys }, from, to, logarithmic: log };
    };
    this.#plans.push({ chart: new Chart(options), picture });
  }

  #addClock(
    title: string,
    format: (value: number) => string,
    columns: (state: DashboardState) => readonly (readonly [label: string, column: string])[],
  ): void {
    const chart = new Chart({
      title,
      axis: 'time',
      format,
      mark: format === bytes ? bytes : mark,
      sync: 'clock',
      onZoom: () => {},
      ...(format === bytes ? { unit: 'bytes' } : {}),
    });
    const picture = (state: DashboardState, points: number): Picture | undefined => {
      const { clock, pauses } = state.events;
      const there = columns(state).filter(([, column]) => clock.column(column) !== undefined);
      if (clock.lastIndex === undefined || there.length === 0) return undefined;
      // The second that runs is not over; and what ended long ago is shown as it ended.
      const now = Math.floor((Date.now() + state.aheadMs) / 1000) - 1;
      const to = now - clock.lastIndex > SECONDS_SHOWN ? clock.lastIndex : Math.max(now, clock.lastIndex);
      const from = Math.max(clock.index[0]!, to - SECONDS_SHOWN);
      const curves = there.map(([, column]) =>
        bySecond(clock.index, clock.column(column)!, from, to, format === bytes),
      );
      return {
        lines: there.map(([label], line) => ({
          label,
          colour: styled(line === 0 ? 'text' : 'soft'),
          latest: curves[line]!.y.at(-1),
        })),
        data: align(curves, from, to, points),
        from,
        to: Math.max(to, from + 10),
        logarithmic: false,
        bands: pauses
          .toArray()
          .map(({ sinceMs, untilMs }) => ({ from: sinceMs / 1000, to: untilMs === undefined ? to : untilMs / 1000 })),
      };
    };
    this.#plans.push({ chart, picture });
  }

  /** The visible part of the x axis, the first step being 1: what was zoomed to, else the last steps. */
  #range(state: DashboardState): Range {
    if (this.#zoom !== undefined) return this.#zoom;
    const ends = this.#runs.shown(state).filter(({ run }) => run.series.length > 0);
    const to = Math.max(0, ...ends.map(({ run }) => run.series.lastIndex!));
    const from = Math.min(to, ...ends.map(({ run }) => run.series.index[0]!));
    const last = Number(this.#window.value);
    return [(last > 0 ? Math.max(from, to - last) : from) + 1, to + 1];
  }
}

/** What is counted says less than what is measured, and what the service counts for itself least. */
function interest(name: string): number {
  if (name.startsWith('clock_cycle')) return 0;
  if (name === 'optim/kl_sample_train_v1') return 3;
  return /^(datums|tokens|durationMs|progress\/|env\/)/.test(name) ? 1 : 2;
}

/** A value for every second: where nothing came, nothing happened, or what was stays. */
function bySecond(index: Float64Array, column: Float64Array, from: number, to: number, stays: boolean): Curve {
  const length = to - from + 1;
  const x = Float64Array.from({ length }, (_, second) => from + second);
  const y = new Float64Array(length);
  let [row, last] = [0, 0];
  for (let second = 0; second < length; second++) {
    let value = stays ? last : 0;
    for (; row < index.length && index[row]! <= from + second; row++) {
      if (index[row] === from + second && !Number.isNaN(column[row]!)) value = column[row]!;
    }
    y[second] = last = value;
  }
  return { x, y };
}
