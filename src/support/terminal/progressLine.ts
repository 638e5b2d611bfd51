import { cutTo, oneLine, textWidth } from './textWidth.js';

/** How far something is, and how fast. */
export interface ProgressState {
  readonly label: string;
  readonly unit: string;
  readonly done: number;
  readonly total: number | undefined;
  /** From 0 to 1; undefined if nothing tells. */
  readonly fraction: number | undefined;
  readonly perSecond: number | undefined;
  readonly remainingMs: number | undefined;
  readonly elapsedMs: number;
  /** What the latest value has to say, a loss for example. */
  readonly detail: string;
  /** What it has cost so far. */
  readonly cost?: string | undefined;
  /** What the service is waiting for. */
  readonly waiting: string | undefined;
}

/** Something to tell on a line of progress. What has a lower `keep` is the first to go if there is no room; without one it stays. */
export interface Fact {
  readonly text: string;
  readonly keep?: number;
}

const BAR_CELLS = 24;
const LEAST_CELLS = 8;
const GAP = '  ';
/** The bar goes after what is kept less than this, and before the rest. */
const KEEP_BAR = 2;

/** A line with a bar, at most `columns` wide. */
export function barLine(state: ProgressState, columns: number): string {
  return fitLine(state.label, state.fraction, facts(state), columns);
}

/** The same as plain text, for logs. */
export function plainLine(state: ProgressState): string {
  return `${state.label}: ${facts(state)
    .map(({ text }) => text)
    .join(', ')}`;
}

/**
 * A label, a bar if there is a fraction, and facts, on a line of at most `columns` cells. On a narrow terminal the bar is shorter,
 * then facts go in the order of their `keep`, and the bar among them; what is too long even then is cut.
 */
export function fitLine(label: string, fraction: number | undefined, told: readonly Fact[], columns: number): string {
  let facts = told.map(({ text, ...rest }) => ({ ...rest, text: oneLine(text) }));
  let hasBar = fraction !== undefined;
  const line = (cells: number) =>
    [oneLine(label), ...(hasBar && cells > 0 ? [bar(fraction!, cells)] : []), ...facts.map(({ text }) => text)].join(
      GAP,
    );
  for (;;) {
    const room = columns - textWidth(line(0)) - GAP.length;
    if (hasBar && room >= LEAST_CELLS) return line(Math.min(BAR_CELLS, room));
    if (!hasBar && room + GAP.length >= 0) return line(0);
    const least = Math.min(...facts.map(({ keep = Infinity }) => keep), hasBar ? KEEP_BAR : Infinity);
    if (least === Infinity) return cutTo(line(0), columns);
    if (hasBar && least === KEEP_BAR) hasBar = false;
    else facts = facts.filter(({ keep }) => keep !== least);
  }
}

function bar(fraction: number, cells: number): string {
  const filled = Math.round(Math.min(1, Math.max(0, fraction)) * cells);
  return `${'█'.repeat(filled)}${'░'.repeat(cells - filled)}`;
}

/** 0.456 as `45 %`, for a line of progress. */
export const percent = (fraction: number): Fact => ({ text: `${Math.floor(fraction * 100)} %`, keep: 4 });

function facts(state: ProgressState): Fact[] {
  const { unit, done, total, fraction, perSecond, remainingMs, elapsedMs, detail, cost, waiting } = state;
  return [
    ...(fraction === undefined ? [] : [percent(fraction)]),
    { text: `${done}${total === undefined ? '' : `/${total}`} ${unit}${(total ?? done) === 1 ? '' : 's'}` },
    ...(perSecond === undefined ? [] : [{ text: `${rate(perSecond)} ${unit}s/s`, keep: 1 }]),
    { text: remainingMs === undefined ? `${clock(elapsedMs)} so far` : `${clock(remainingMs)} left`, keep: 3 },
    ...(detail === '' ? [] : [{ text: detail }]),
    ...(cost === undefined ? [] : [{ text: cost, keep: 3.5 }]),
    ...(waiting === undefined ? [] : [{ text: waiting }]),
  ];
}

/** A number of things a second, with the digits that matter. */
export function rate(perSecond: number): string {
  if (perSecond >= 100) return perSecond.toFixed(0);
  return perSecond >= 1 ? perSecond.toFixed(1) : perSecond.toPrecision(2);
}

/** 12,345 as `12.3k`, 1,234,567 as `1.2M`. */
export function short(count: number): string {
  if (count < 10_000) return count.toLocaleString('en-US');
  return count < 1e6 ? `${(count / 1e3).toFixed(1)}k` : `${(count / 1e6).toFixed(1)}M`;
}

/** 5 s as 0:05, 75 minutes as 1:15:00. */
export function clock(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const two = (part: number) => String(part).padStart(2, '0');
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}
