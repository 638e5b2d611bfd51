// A value over repeats, and whether it meets its bar.
const sorted = (values) => values.toSorted((a, b) => a - b);

/** The median of the repeats, with the least and the greatest. */
export function spread(values) {
  const order = sorted(values);
  return { median: order[order.length >> 1], least: order[0], greatest: order.at(-1), repeats: values.length };
}

/** One row of the table. The bar is what the median must reach, `atLeast` or `atMost`; a row without one only informs. */
export const row = (what, unit, values, bar = {}) => {
  const measured = spread(values);
  const { atLeast, atMost } = bar;
  const met =
    atLeast !== undefined ? measured.median >= atLeast : atMost !== undefined ? measured.median <= atMost : undefined;
  return { what, unit, ...measured, ...bar, ...(met === undefined ? {} : { met }) };
};

const short = (value) =>
  Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2);

export function printed({ what, unit, median, least, greatest, repeats, atLeast, atMost, met, skipped }) {
  if (skipped !== undefined) return `not measured ${what}: ${skipped}`;
  const state = met === undefined ? '      ' : met ? 'met   ' : 'MISSED';
  const range = repeats > 1 ? ` (${short(least)} to ${short(greatest)} in ${repeats})` : '';
  const bar = atLeast !== undefined ? `, at least ${atLeast}` : atMost !== undefined ? `, at most ${atMost}` : '';
  return `${state} ${what}: ${short(median)} ${unit}${range}${bar}`;
}

/** Runs a bench file by itself: prints its rows. */
export async function main(url, measure) {
  if (process.argv[1] !== new URL(url).pathname) return;
  for (const each of await measure()) console.log(printed(each));
}
