// forward_backward of 1,024 × 2,048 tokens, from the caller's arrays or lists to the result: beside a raw post of the ready bytes,
// and beside the Python SDK where it is installed (`python3 test/parity/list_sdk.py` installs it).
// Run: npm run build && node bench/forwardBackward.mjs      (REPEATS=<n>, PYTHON=<a Python with tinker>)
import { runApart, withServer } from './support/apart.mjs';
import { notMeasured, python } from './support/python.mjs';
import { main, row, spread } from './support/spread.mjs';

const SIZE = { datums: 1024, tokens: 2048 };

export function measureForwardBackward({ repeats = Number(process.env.REPEATS ?? 7) } = {}) {
  return withServer({}, async (origin) => {
    const { raw, arrays, lists } = await runApart('./passRun.mjs', { origin, repeats, ...SIZE });
    const over = (times, others) => times.map(({ seconds }, at) => seconds / others[at].seconds);
    const rows = [
      row('forward_backward 1,024 × 2,048 from typed arrays', '× a raw post', over(arrays, raw)),
      row('forward_backward 1,024 × 2,048 from lists', '× a raw post', over(lists, raw)),
    ];
    if (python === undefined) return [...rows, notMeasured('forward_backward beside Python')];
    const job = { base_url: origin, repeats: 3, ...SIZE };
    const theirs = await runApart('./python_forward_backward.py', job, { program: python });
    const faster = (name, ours) => {
      const { median } = spread(ours.map(({ seconds }) => seconds));
      return theirs[name].map((seconds) => seconds / median);
    };
    return [
      ...rows,
      row('forward_backward beside Python, typed arrays', '× as fast', faster('arrays', arrays), { atLeast: 3.5 }),
      row('forward_backward beside Python, lists', '× as fast', faster('lists', lists)),
      // What any client could reach at best.
      row('forward_backward beside Python: a raw post', '× as fast', faster('arrays', raw)),
    ];
  });
}

await main(import.meta.url, measureForwardBackward);
