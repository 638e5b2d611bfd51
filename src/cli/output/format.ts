const UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];

/** 1536 as `1.5 KB`. */
export function size(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return unit === 0 ? `${value} B` : `${value.toFixed(1)} ${UNITS[unit]}`;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A time as people say it: `2 hours ago`, `in 3 days`; a date where it is more than thirty days off. */
export function when(time: string | undefined, nowMs: number): string {
  if (time === undefined || time === '') return 'N/A';
  // Some servers write no zone and mean UTC.
  const atMs = Date.parse(/[zZ]|[+-]\d\d:?\d\d$/.test(time) || !time.includes('T') ? time : `${time}Z`);
  if (Number.isNaN(atMs)) return time;
  const offMs = Math.abs(nowMs - atMs);
  if (offMs > 30 * DAY) return new Date(atMs).toISOString().slice(0, 10);
  const future = atMs > nowMs;
  const [unitMs, unit] =
    offMs > 7 * DAY
      ? [7 * DAY, 'week']
      : offMs >= DAY
        ? [DAY, 'day']
        : offMs > HOUR
          ? [HOUR, 'hour']
          : [MINUTE, 'minute'];
  if (offMs <= MINUTE) return future ? 'in less than a minute' : 'just now';
  const span = count(Math.floor(offMs / unitMs), unit);
  return future ? `in ${span}` : `${span} ago`;
}

/** 1 and `step` as `1 step`, 2 as `2 steps`; thousands are set apart. */
export const count = (number: number, unit: string): string =>
  `${number.toLocaleString('en-US')} ${unit}${number === 1 ? '' : 's'}`;

export const yesNo = (value: boolean): string => (value ? 'Yes' : 'No');

export const orMissing = (value: string | number | undefined): string => (value === undefined ? 'N/A' : String(value));

/** Text for a shell: quoted where it has to be. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./~-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** Whether a run trains LoRA weights, and of which rank. */
export const loraStatus = ({ isLora, loraRank }: { readonly isLora: boolean; readonly loraRank?: number }): string =>
  isLora ? (loraRank === undefined || loraRank === 0 ? 'Yes' : `Yes (Rank ${loraRank})`) : 'No';
