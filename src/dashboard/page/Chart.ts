import uPlot from 'uplot';
import type { Aligned } from '../state/align.js';
import { make } from './dom.js';
import { whole } from './format.js';
import { swatch } from './runs.js';
import { colour } from './theme.js';

export interface Line {
  readonly label: string;
  readonly colour: string;
  readonly faint?: boolean;
  /** The newest value: what is drawn last may be the highest of many. */
  readonly latest?: number | undefined;
}

export interface Picture {
  readonly lines: readonly Line[];
  readonly data: Aligned;
  readonly from: number;
  readonly to: number;
  readonly logarithmic: boolean;
  /** Spans of the x axis in which something stood still. */
  readonly bands?: readonly { readonly from: number; readonly to: number }[];
}

export interface ChartOptions {
  readonly title: string;
  readonly axis: 'step' | 'time';
  readonly format: (value: number) => string;
  /** The text of a mark on the y axis, where marks are so far apart. */
  readonly mark: (value: number, step: number) => string;
  readonly unit?: 'bytes';
  /** What stands in the caption instead of the title: a select, for example. */
  readonly control?: HTMLElement;
  /** Charts with the same key show the same place under the cursor. */
  readonly sync: string;
  readonly onZoom: (range: readonly [from: number, to: number] | undefined) => void;
}

const HEIGHT = 210;
const NOTHING_YET = 'Nothing yet: it begins with the first step.';
const NOTHING_ABOVE_ZERO = 'No value is above zero, so there is nothing to draw on a logarithmic axis.';
/** Up to this many points are drawn as dots: a line would hide how few they are. */
const FEW = 40;
/** Distances between marks: round numbers of KiB, whole steps. */
const INCREMENTS = {
  bytes: Array.from({ length: 50 }, (_, power) => 2 ** power),
  steps: Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((times) => times * 10 ** power)).flat(),
};

/** One plot with its caption: drawn by uPlot, read with pointer or keyboard. */
export class Chart {
  readonly element: HTMLElement;
  visible = true;
  /** The theme it was drawn in last; none if it was not. */
  theme = '';
  readonly #plot = make('div', { class: 'plot' });
  readonly #output = make('output');
  readonly #options: ChartOptions;
  #uplot: uPlot | undefined;
  #shape = '';
  #picture: Picture | undefined;

  constructor(options: ChartOptions) {
    this.#options = options;
    const name = options.control ?? make('span', { class: 'name' }, options.title);
    this.element = make(
      'figure',
      { tabindex: '0', 'aria-label': options.title, 'aria-describedby': 'hint', 'data-chart': options.title },
      make('figcaption', {}, name, this.#output),
      this.#plot,
    );
    this.element.addEventListener('keydown', (event) => this.#key(event));
    new ResizeObserver(() => {
      const width = this.#plot.clientWidth;
      if (this.#uplot !== undefined && width > 0) this.#uplot.setSize({ width, height: HEIGHT });
    }).observe(this.#plot);
  }

  get width(): number {
    return this.#plot.clientWidth;
  }

  draw(picture: Picture, theme: string): void {
    this.#picture = picture;
    this.theme = theme;
    const { lines, data, logarithmic } = picture;
    const nothing = !data.ys.some((ys) => ys.some((y) => y !== null));
    const shape = nothing
      ? `nothing ${logarithmic}`
      : JSON.stringify([lines.map(({ label, colour, faint }) => [label, colour, faint]), logarithmic, theme]);
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#uplot?.destroy();
      this.#uplot = undefined;
      this.#plot.replaceChildren(
        ...(nothing ? [make('p', { class: 'empty' }, logarithmic ? NOTHING_ABOVE_ZERO : NOTHING_YET)] : []),
      );
    }
    if (nothing) return;
    const columns = [data.x, ...data.ys] as uPlot.AlignedData;
    this.#uplot ??= this.#create(columns);
    this.#uplot.batch((plot: uPlot) => {
      plot.setData(columns, false);
      plot.setScale('x', { min: picture.from, max: Math.max(picture.to, picture.from + 1e-9) });
    });
    if (this.#uplot.cursor.idx === undefined || this.#uplot.cursor.idx === null) this.#say(undefined);
  }

  #create(data: uPlot.AlignedData): uPlot {
    const { lines, logarithmic } = this.#picture!;
    const { axis, format, mark, unit, sync, onZoom } = this.#options;
    const [soft, line] = [colour('soft'), colour('line')];
    const shared = {
      stroke: soft,
      grid: { stroke: line, width: 1 },
      ticks: { stroke: line, width: 1 },
      font: '11px system-ui',
    };
    return new uPlot(
      {
        width: this.#plot.clientWidth || 400,
        height: HEIGHT,
        padding: [8, null, 0, null],
        legend: { show: false },
        scales: { x: { time: axis === 'time' }, y: logarithmic ? { distr: 3 } : { range: linearRange } },
        cursor: {
          sync: { key: sync },
          drag: { x: true, y: false, setScale: false },
          bind: {
            dblclick: () => () => {
              onZoom(undefined);
              return null;
            },
          },
        },
        axes: [
          {
            ...shared,
            size: 28,
            space: 70,
            ...(axis === 'step' ? { incrs: INCREMENTS.steps } : { values: (_, splits) => splits.map(timeOfDay) }),
          },
          {
            ...shared,
            size: 58,
            ...(unit === 'bytes' ? { incrs: INCREMENTS.bytes } : {}),
            // On a logarithmic axis marks are not the same distance apart.
            values: (_, splits, __, ___, step) =>
              splits.map((split) => (split === null ? '' : logarithmic ? format(split) : mark(split, step))),
          },
        ],
        series: [
          {},
          ...lines.map((each): uPlot.Series => {
            const stroke = each.colour;
            return {
              label: each.label,
              stroke: each.faint === true ? stroke.replace(')', ' / 0.35)') : stroke,
              width: each.faint === true ? 1 : 1.5,
              spanGaps: true,
              points: { size: 5, fill: stroke, show: (_, __, from, to) => to - from < FEW },
            };
          }),
        ],
        hooks: {
          drawClear: [(plot) => this.#drawBands(plot)],
          setCursor: [(plot) => this.#say(plot.cursor.idx ?? undefined)],
          setSelect: [
            (plot) => {
              const { left, width } = plot.select;
              if (width > 3) onZoom([plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')]);
              if (width > 0) plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            },
          ],
        },
      },
      data,
      this.#plot,
    );
  }

  #drawBands(plot: uPlot): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.fillStyle = colour('warn-back');
    for (const { from, to } of this.#picture?.bands ?? []) {
      const left = Math.max(bbox.left, plot.valToPos(from, 'x', true));
      const right = Math.min(bbox.left + bbox.width, Math.max(plot.valToPos(to, 'x', true), left + 2));
      if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height);
    }
    ctx.restore();
  }

  /** Writes the values at a place, or the newest, beside the title. */
  #say(place: number | undefined): void {
    const { lines, data } = this.#picture!;
    const { axis, format } = this.#options;
    const several = lines.filter(({ faint }) => faint !== true).length > 1;
    const values = lines.flatMap(({ label, colour: stroke, faint, latest }, line) => {
      if (faint === true) return [];
      const value = place === undefined ? latest : valueAt(data.ys[line]!, place);
      // Lines without a value here keep their place, so that nothing jumps.
      const text = value === undefined || value === null ? '–' : format(value);
      return [several ? make('span', {}, swatch(stroke), `${label} ${text}`) : make('span', {}, text)];
    });
    const x = place === undefined ? undefined : data.x[place];
    const at = x === undefined ? '' : axis === 'time' ? `${timeOfDay(x)}: ` : `step ${whole(x)}: `;
    this.#output.replaceChildren(...(at === '' ? [] : [make('span', {}, at)]), ...values);
  }

  #key(event: KeyboardEvent): void {
    const plot = this.#uplot;
    const picture = this.#picture;
    if (plot === undefined || picture === undefined || event.target !== this.element) return;
    const { from, to, data } = picture;
    const middle = plot.cursor.idx == null ? (from + to) / 2 : data.x[plot.cursor.idx]!;
    const zoom = (factor: number) => {
      const half = ((to - from) / 2) * factor;
      this.#options.onZoom([middle - half, middle + half]);
    };
    switch (event.key) {
      case 'ArrowLeft':
      case 'ArrowRight': {
        const last = data.x.length - 1;
        const by = (event.key === 'ArrowLeft' ? -1 : 1) * (event.shiftKey ? 10 : 1);
        const place = Math.min(last, Math.max(0, (plot.cursor.idx ?? last) + by));
        plot.setCursor({ left: plot.valToPos(data.x[place]!, 'x'), top: plot.over.clientHeight / 2 });
        break;
      }
      case '+':
      case '=':
        zoom(0.5);
        break;
      case '-':
        zoom(2);
        break;
      case '0':
      case 'Escape':
        this.#options.onZoom(undefined);
        break;
      default:
        return;
    }
    event.preventDefault();
  }
}

/** The ends of the y axis. A curve that is always zero has an axis up to 1. */
const linearRange = (_: uPlot, low: number | null, high: number | null): uPlot.Range.MinMax =>
  low === 0 && high === 0
    ? [0, 1]
    : low === null || high === null
      ? [null, null]
      : uPlot.rangeNum(low, high, 0.1, true);

/** The value at a place; between two values, as there are many between two evaluations, the one before. */
function valueAt(ys: readonly (number | null)[], place: number): number | null | undefined {
  if (ys[place] !== null) return ys[place];
  const within = ys.findLastIndex((value) => value !== null) > place;
  return within ? ys.slice(0, place).findLast((value) => value !== null) : null;
}

const timeOfDay = (second: number): string => new Date(second * 1000).toLocaleTimeString('en-GB');
