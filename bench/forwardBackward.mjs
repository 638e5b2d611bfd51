// forward_backward of 1,024 × 2,048 tokens, from the caller's arrays or lists to the result: beside a raw post of the ready bytes,
// and beside the Python SDK where it is installed (`python3 test/parity/list_sdk.py` installs it).
// Run: npm run build && node bench/forwardBackward.mjs      (REPEATS=<n>, PYTHON=<a Python with tinker>)
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runApart, withServer } from './support/apart.mjs';
import { main, row, spread } from './support/spread.mjs';

const SIZE = { datums: 1024, tokens: 2048 };
const parity = fileURLToPath(new URL('../node_modules/.cache/parity-venv/bin/python', import.meta.url));
const python = process.env.PYTHON ?? (existsSync(parity) ? parity : undefined);

export function measureForwardBackward({ repeats = Number(process.env.REPEATS ?? 7) } = {}) {
  return withServer({}, async (origin) => {
    const { raw, arrays, lists } = await runApart('./passRun.mjs', { origin, repeats, ...SIZE });
    const over = (times, others) => times.map(({ seconds }, at) => seconds / others[at].seconds);
    const rows = [
      row('forward_backward 1,024 × 2,048 from typed arrays', '× a raw post', over(arrays, raw), { atMost: 1.7 }),
      row('forward_backward 1,024 × 2,048 from lists', '× a raw post', over(lists, raw)),
    ];
    if (python === undefined) return [...rows, skipped('no Python with tinker')];
    const job = { base_url: origin, repeats: 3, ...SIZE };
    const theirs = await runApart('./python_forward_backward.py', job, { program: python });
    const faster = (name, ours) => {
      const { median } = spread(ours.map(({ seconds }) => seconds));
      return theirs[name].map((seconds) => seconds / median);
    };
    return [
      ...rows,
      row('forward_backward beside Python, typed arrays', '× as fast', faster('arrays', arrays), { atLeast: 4 }),
      row('forward_backward beside Python, lists', '× as fast', faster('lists', lists)),
    ];
  });
}
const skipped = (why) => ({ what: 'forward_backward beside Python', skipped: why });

await main(import.meta.url, measureForwardBackward);
