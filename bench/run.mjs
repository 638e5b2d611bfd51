// Runs the benchmarks that have a bar and says whether each is met. Needs `npm run build` first.
import { benchEncoding } from './encoding.mjs';
import { benchSampling } from './sampling.mjs';

const bars = [];
const bar = (name, value, least, unit) => {
  bars.push(value >= least);
  console.log(`${value >= least ? 'met   ' : 'MISSED'} ${name}: ${value.toFixed(2)} ${unit}, the bar is ${least}\n`);
};

bar('encoding', benchEncoding().megabytesPerSecond, 300, 'MB/s');
bar('sampling', (await benchSampling()).ratio, 0.7, 'of raw undici');
process.exitCode = bars.every(Boolean) ? 0 : 1;
