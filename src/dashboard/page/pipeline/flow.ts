import type { FlowReport } from '../../../operators/pressure/flow.js';
import type { DashboardState } from '../../state/DashboardState.js';
import { byId, drawing, make, patch } from '../dom.js';
import { whole } from '../format.js';
import { layOutFlow, type Place } from './layOutFlow.js';

/** In pixels. */
const BOX = { width: 190, height: 112 };
const GAP = { along: 40, across: 16 };
/** Where there is less room than this, pipelines run from top to bottom. */
const NARROW = 640;

/** The pipelines as boxes with what each operator does, and which of them is the bottleneck. */
export function renderFlow({ flow: { reports, bottleneck } = { reports: [] } }: DashboardState): void {
  byId('pipeline').hidden = byId('to-pipeline').hidden = reports.length === 0;
  if (reports.length === 0) return;
  byId('bottleneck').textContent = verdictOf(reports, bottleneck);
  const flow = byId('flow');
  const places = layOutFlow(reports);
  const isDown = flow.parentElement!.clientWidth < NARROW;
  const pixels = ({ column, row }: Place) => {
    const [x, y] = isDown ? [row, column] : [column, row];
    return {
      x: x * (BOX.width + (isDown ? GAP.across : GAP.along)),
      y: y * (BOX.height + (isDown ? GAP.along : GAP.across)),
    };
  };
  const all = [...places.values()].map(pixels);
  flow.style.width = `${Math.max(...all.map(({ x }) => x)) + BOX.width}px`;
  flow.style.height = `${Math.max(...all.map(({ y }) => y)) + BOX.height}px`;
  const paths = reports.flatMap(({ id, into }) =>
    into.flatMap((target) => {
      const [from, to] = [places.get(id), places.get(target)];
      return from === undefined || to === undefined ? [] : [curve(pixels(from), pixels(to), isDown)];
    }),
  );
  const arrow = drawing(
    'marker',
    { id: 'arrow', viewBox: '0 0 8 8', refX: 8, refY: 4, markerWidth: 8, markerHeight: 8, orient: 'auto' },
    drawing('path', { d: 'M0 0L8 4L0 8Z' }),
  );
  const lines = paths.map((d) => drawing('path', { d, 'marker-end': 'url(#arrow)' }));
  patch(flow, [
    drawing('svg', { 'aria-hidden': 'true' }, arrow, ...lines),
    ...reports.map((report) => box(report, pixels(places.get(report.id)!), report.id === bottleneck)),
  ]);
}

function verdictOf(reports: readonly FlowReport[], bottleneck: number | undefined): string {
  const slow = reports.find(({ id }) => id === bottleneck);
  if (slow !== undefined) {
    const { name, busyShare, waiting } = slow;
    return `The bottleneck is ${name}: busy ${percent(busyShare)} of the time${waiting > 0 ? `, ${whole(waiting)} waiting in it` : ''}.`;
  }
  return reports.every(({ ended }) => ended)
    ? 'The pipeline has ended.'
    : 'No bottleneck: no operator is busy half of the time.';
}

function box(report: FlowReport, { x, y }: { x: number; y: number }, isSlow: boolean): HTMLElement {
  const { name, itemsIn, itemsOut, waiting, busyShare, gatedShare, ended } = report;
  const share = (kind: 'busy' | 'gated', part: number) => {
    const bar = make('span', { class: kind });
    bar.style.width = percent(part).replace(' ', '');
    return bar;
  };
  const element = make(
    'div',
    { class: `operator${isSlow ? ' bottleneck' : ''}${ended ? ' ended' : ''}`, 'data-operator': name, title: name },
    make('p', { class: 'name' }, name),
    make('p', {}, `in ${whole(itemsIn)} · out ${whole(itemsOut)}`),
    make('p', {}, `${whole(waiting)} waiting`),
    make('div', { class: 'shares', 'aria-hidden': 'true' }, share('busy', busyShare), share('gated', gatedShare)),
    make('p', {}, ended ? 'ended' : `busy ${percent(busyShare)} · gated ${percent(gatedShare)}`),
  );
  Object.assign(element.style, {
    left: `${x}px`,
    top: `${y}px`,
    width: `${BOX.width}px`,
    height: `${BOX.height}px`,
  });
  return element;
}

type Point = { readonly x: number; readonly y: number };

/** From the end of one box to the start of another. */
function curve(from: Point, to: Point, isDown: boolean): string {
  const [ax, ay] = isDown
    ? [from.x + BOX.width / 2, from.y + BOX.height]
    : [from.x + BOX.width, from.y + BOX.height / 2];
  const [bx, by] = isDown ? [to.x + BOX.width / 2, to.y] : [to.x, to.y + BOX.height / 2];
  const [mx, my] = [(ax + bx) / 2, (ay + by) / 2];
  return isDown
    ? `M${ax} ${ay}C${ax} ${my} ${bx} ${my} ${bx} ${by}`
    : `M${ax} ${ay}C${mx} ${ay} ${mx} ${by} ${bx} ${by}`;
}

const percent = (share: number): string => `${Math.round(share * 100)} %`;
