// The output of a forward-backward pass with 2 million logprobs: from protobuf beside a plain copy of its bytes, from JSON beside
// `JSON.parse` alone, each in a process of its own. Run: npm run build && node bench/decoding.mjs      (REPEATS=<n>)
import { runApart } from './support/apart.mjs';
import { main, row } from './support/spread.mjs';

export async function measureDecoding({ repeats = Number(process.env.REPEATS ?? 15) } = {}) {
  const measure = (format) => runApart('./decodeRun.mjs', { format, repeats }, { nodeOptions: ['--expose-gc'] });
  return [
    row('2 M logprobs from protobuf', '× a plain copy (CPU)', await measure('protobuf'), { atMost: 1.5 }),
    row('2 M logprobs from JSON', '× JSON.parse (CPU)', await measure('json'), { atMost: 2 }),
  ];
}

await main(import.meta.url, measureDecoding);
