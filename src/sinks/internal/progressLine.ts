/** How far something is, and how fast. */
export interface ProgressState {
  readonly label: string;
  readonly unit: string;
  readonly done: number;
  readonly total: number | undefined;
  /** From 0 to 1; undefined where nothing tells. */
  readonly fraction: number | undefined;
  readonly perSecond: number | undefined;
  readonly remainingMs: number | undefined;
  readonly elapsedMs: number;
  /** What the latest value has to say, a loss for example. */
  readonly detail: string;
  /** What the service is waiting for. */
  readonly waiting: string | undefined;
}

const BAR_CELLS = 24;

/** A line with a bar, at most `columns` wide. */
export function barLine(state: ProgressState, columns: number): string {
  const { label, fraction } = state;
  const filled = fraction === undefined ? 0 : Math.round(fraction * BAR_CELLS);
  const bar = fraction === undefined ? [] : [`${'█'.repeat(filled)}${'░'.repeat(BAR_CELLS - filled)}`];
  const line = [label, ...bar, ...facts(state)].join('  ');
  return line.length <= columns ? line : `${line.slice(0, Math.max(0, columns - 1))}…`;
}

/** The same as plain text, for logs. */
export function plainLine(state: ProgressState): string {
  return `${state.label}: ${facts(state).join(', ')}`;
}

function facts({
  unit,
  done,
  total,
  fraction,
  perSecond,
  remainingMs,
  elapsedMs,
  detail,
  waiting,
}: ProgressState): string[] {
  return [
    ...(fraction === undefined ? [] : [`${Math.floor(fraction * 100)} %`]),
    `${done}${total === undefined ? '' : `/${total}`} ${unit}s`,
    ...(perSecond === undefined ? [] : [`${rate(perSecond)} ${unit}s/s`]),
    remainingMs === undefined ? `${clock(elapsedMs)} so far` : `${clock(remainingMs)} left`,
    ...(detail === '' ? [] : [detail]),
    ...(waiting === undefined ? [] : [waiting]),
  ];
}

function rate(perSecond: number): string {
  if (perSecond >= 100) return perSecond.toFixed(0);
  return perSecond >= 1 ? perSecond.toFixed(1) : perSecond.toPrecision(2);
}

/** 5 s as 0:05, 75 minutes as 1:15:00. */
export function clock(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const two = (part: number) => String(part).padStart(2, '0');
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}
