const MINUS = '−';
/** The column that has the reward of all trajectories. */
export const REWARD = 'env/all/reward/total';
/** The loss on held-out data, as `evaluateEvery` gives it. */
export const VALIDATION = 'eval/validation_loss';

/** The column of a run that has its reward: of all trajectories if there is such a one; others are parts and kinds. */
export function rewardIn(names: readonly string[]): string | undefined {
  return names.includes(REWARD) ? REWARD : names.find((name) => /reward/i.test(name) && !name.startsWith('eval/'));
}

const HUES = 12;

/**
 * The colour of the run at a place, counted from 0. No two places have the same one. Twelve hues, neighbours in different
 * lightness; each further dozen lies between those before it. Every colour is readable on light and on dark.
 */
export function runColour(place: number): string {
  const dozen = Math.floor(place / HUES);
  const hue = (255 + place * 150 + ((dozen * 0.618) % 1) * (360 / HUES)) % 360;
  return `oklch(${place % 2 === 0 ? 0.55 : 0.62} 0.17 ${hue.toFixed(2)})`;
}

/** A number in about four digits. */
export function number(value: number | undefined | null): string {
  if (value === undefined || value === null || Number.isNaN(value)) return '–';
  const size = Math.abs(value);
  const text =
    size >= 1e6
      ? `${trim(size / 1e6)} M`
      : size >= 1e4
        ? `${trim(size / 1e3)} k`
        : size === 0
          ? '0'
          : size < 1e-3
            ? Number(size.toPrecision(3)).toExponential()
            : Number.isInteger(size)
              ? String(size)
              : trim(size);
  return value < 0 ? `${MINUS}${text}` : text;
}

/** A number on an axis whose marks are `step` apart: as many digits as tell them apart. */
export function mark(value: number, step: number): string {
  const size = Math.abs(value);
  if (size < 1e-12) return '0';
  if (size < 1e-3) return number(value);
  const [unit, name] = size >= 1e6 ? [1e6, ' M'] : size >= 1e4 ? [1e3, ' k'] : [1, ''];
  let digits = 0;
  while (digits < 6 && Math.abs(Math.round((step / unit) * 10 ** digits) - (step / unit) * 10 ** digits) > 1e-6)
    digits++;
  return `${value < 0 ? MINUS : ''}${(size / unit).toFixed(digits)}${name}`;
}

const trim = (value: number): string => String(Number(value.toPrecision(4)));

/** 1,234,567 as people read it. */
export const whole = (value: number): string => Math.round(value).toLocaleString('en-US');

export function bytes(value: number): string {
  if (value < 1024) return `${Math.round(value)} B`;
  const [size, unit] = value < 1024 ** 2 ? [1024, 'KiB'] : value < 1024 ** 3 ? [1024 ** 2, 'MiB'] : [1024 ** 3, 'GiB'];
  return `${Number((value / size).toPrecision(3))} ${unit}`;
}

export function duration(ms: number): string {
  const seconds = Math.max(0, ms / 1000);
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** The time of day. */
export const clock = (atMs: number): string => new Date(atMs).toLocaleTimeString('en-GB');

/** Day and time of day. */
export const dateOf = (atMs: number): string =>
  new Date(atMs).toLocaleString('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });

/** A log-probability in three decimals. */
export const logprob = (value: number): string =>
  value
    .toFixed(3)
    .replace(/^-0\.000$/, '0.000')
    .replace('-', MINUS);

/** A name that the service made is its last parts, and enough of the first to tell it from others. */
export const shortName = (name: string): string =>
  name.replace(/^([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:/, '$1…:');

export const percent = (part: number): string =>
  part >= 0.1 ? `${(part * 100).toFixed(0)} %` : `${(part * 100).toPrecision(2)} %`;
