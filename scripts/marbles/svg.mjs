const LEFT = 104;
const STEP = 28;
const RADIUS = 12;
const ROW = 40;
const BOX = 32;
const PADDING = 14;
const COLORS = ['#ffd6a5', '#a5d8ff', '#b2f2bb', '#eebefa', '#ffec99', '#ffc9c9'];

// A background of its own keeps a picture readable where the page's theme is not the system's.
const STYLE = `
  .paper { fill: #ffffff; stroke: #d0d7de; }
  .line { stroke: #57606a; stroke-width: 1.5; fill: none; }
  .end { stroke: #1f2328; stroke-width: 2.5; fill: none; }
  .error { stroke: #cf222e; stroke-width: 2.5; fill: none; }
  .box { fill: #f6f8fa; stroke: #57606a; }
  .marble { stroke: #57606a; }
  text { font: 13px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; text-anchor: middle; dominant-baseline: central; }
  .label { fill: #1f2328; }
  .name { fill: #57606a; text-anchor: end; }
  .call { fill: #1f2328; font-family: ui-monospace, 'SF Mono', Menlo, Consolas, monospace; }
${COLORS.map((color, index) => `  .c${index} { fill: ${color}; }`).join('\n')}
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; stroke: #30363d; }
    .line { stroke: #8b949e; }
    .end { stroke: #e6edf3; }
    .error { stroke: #ff7b72; }
    .box { fill: #161b22; stroke: #8b949e; }
    .marble { stroke: none; }
    .name { fill: #8b949e; }
    .call { fill: #e6edf3; }
  }`;

/** The rows of a picture, with the calls between them, as SVG for light and dark pages. */
export function toSvg({ name, layout }, rows) {
  const last = Math.max(...rows.flatMap(({ values, end }) => [end?.frame ?? 0, ...values.map(({ frame }) => frame)]));
  const calls = layout.flatMap((part) => part.call ?? []);
  const width = Math.max(
    x(last) + 2 * STEP,
    ...rows.flatMap(({ values }) => values.map(({ frame, label }) => x(frame) + halfWidth(label) + 2 * PADDING)),
    ...calls.map((call) => LEFT + call.length * 7.9 + 2 * PADDING + RADIUS),
  );
  let y = PADDING;
  const drawn = [];
  const told = [];
  for (const part of layout) {
    if (part.call !== undefined) {
      drawn.push(box(part.call, y + 4, width));
      y += BOX + 8;
      continue;
    }
    for (const row of rows.filter(({ group }) => group === part.group)) {
      drawn.push(timeline(row, y + ROW / 2, last));
      told.push(describe(row));
      y += ROW + (highest(row) - 1) * (2 * RADIUS + 2);
    }
  }
  const height = y + PADDING;
  const [w, h] = [Math.ceil(width), Math.ceil(height)];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${w} ${h}" width="${w}" height="${h}" role="img">`,
    `<title>${escape(`${name}: ${calls.join(', ')}`)}</title>`,
    `<desc>${escape(told.join('; '))}</desc>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="paper" x="0.5" y="0.5" width="${w - 1}" height="${h - 1}" rx="8"/>`,
    ...drawn,
    '</svg>',
    '',
  ].join('\n');
}

const x = (frame) => LEFT + RADIUS + frame * STEP;

function box(call, top, width) {
  const [left, right] = [LEFT, width - PADDING];
  return [
    `<rect class="box" x="${left}" y="${top}" width="${right - left}" height="${BOX}" rx="5"/>`,
    `<text class="call" x="${(left + right) / 2}" y="${top + BOX / 2}">${escape(call)}</text>`,
  ].join('\n');
}

function timeline({ name, from, values, end }, y, last) {
  const stop = end?.frame ?? last + 1;
  return [
    `<text class="name" x="${LEFT - RADIUS}" y="${y}">${escape(name)}</text>`,
    `<path class="line" d="M${x(from)} ${y}H${x(stop)}"/>`,
    `<path class="line" d="M${x(from)} ${y - 5}v10"/>`,
    ...(end === undefined ? [] : [ending(end, y)]),
    ...values.map((value, index) => marble(value, y + place(values, index) * (2 * RADIUS + 2))),
  ].join('\n');
}

/** How many values of the same moment come before this one. */
const place = (values, index) => values.slice(0, index).filter(({ frame }) => frame === values[index].frame).length;
const highest = ({ values }) => Math.max(1, ...values.map((_, index) => place(values, index) + 1));

function ending({ frame, how }, y) {
  const at = x(frame);
  if (how === 'complete') return `<path class="end" d="M${at} ${y - 17}v34"/>`;
  if (how === 'error') return `<path class="error" d="M${at - 9} ${y - 9}l18 18m0 -18l-18 18"/>`;
  // Unsubscribed from: the line just stops.
  return `<path class="line" d="M${at} ${y - 5}v10" stroke-dasharray="2 2"/>`;
}

const halfWidth = (label) => Math.max(RADIUS, label.length * 3.9 + 6);

function marble({ frame, label }, y) {
  const half = halfWidth(label);
  const color = `c${(label.codePointAt(0) ?? 0) % COLORS.length}`;
  return [
    `<rect class="marble ${color}" x="${x(frame) - half}" y="${y - RADIUS}" width="${2 * half}" height="${2 * RADIUS}" rx="${RADIUS}"/>`,
    `<text class="label" x="${x(frame)}" y="${y}">${escape(label)}</text>`,
  ].join('\n');
}

/** A row in words, for those who cannot see it. */
function describe({ name, from, values, end }) {
  const events = values.map(({ frame, label }) => `${label} at ${frame}`);
  const how = { complete: 'completes', error: 'fails', stopped: 'is unsubscribed' };
  if (end !== undefined) events.push(`${how[end.how]} at ${end.frame}`);
  return `${name}${from > 0 ? `, from ${from}` : ''}: ${events.join(', ')}`;
}

const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
