// The output of a forward-backward pass with 2 million logprobs: from protobuf beside a plain copy of its bytes, from JSON beside
// `JSON.parse` alone. Run: npm run build && node bench/decoding.mjs      (REPEATS=<n>)
import { decodeForwardBackwardOutput, ForwardBackwardOutputJson, TensorData } from '../dist/wire/index.js';
import { encodeForwardBackwardOutput } from '../dist/wire/proto/forwardBackwardOutput.js';
import { main, row } from './support/spread.mjs';

const DATUMS = 1024;
const TOKENS = 2048;
const WARM_UPS = 3;

const time = (work) => {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return user + system;
};

export function measureDecoding({ repeats = Number(process.env.REPEATS ?? 7) } = {}) {
  const data = Float32Array.from({ length: TOKENS }, (_, at) => -Math.abs(Math.sin(at)) * 8);
  const tensor = new TensorData({ dtype: 'float32', data, shape: [TOKENS] });
  const lossFnOutputs = Array.from({ length: DATUMS }, () => ({ logprobs: tensor }));
  const bytes = encodeForwardBackwardOutput({ lossFnOutputType: 'Logprobs', lossFnOutputs, metrics: {} });
  const values = Array.from(data);
  const text = JSON.stringify({
    loss_fn_output_type: 'Logprobs',
    loss_fn_outputs: Array.from({ length: DATUMS }, () => ({
      logprobs: { data: values, dtype: 'float32', shape: [TOKENS] },
    })),
    metrics: {},
  });
  const fromJson = () => {
    const decoded = ForwardBackwardOutputJson.decode(JSON.parse(text));
    if (decoded._tag === 'Left') throw new Error('the canned output does not decode');
  };
  const [binary, json] = [[], []];
  for (let repeat = -WARM_UPS; repeat < repeats; repeat++) {
    const copy = time(() => bytes.slice());
    const decode = time(() => decodeForwardBackwardOutput(bytes));
    const parse = time(() => JSON.parse(text));
    const decodeJson = time(fromJson);
    if (repeat < 0) continue;
    binary.push(decode / copy);
    json.push(decodeJson / parse);
  }
  return [
    row('2 M logprobs from protobuf', '× a plain copy (CPU)', binary, { atMost: 1.5 }),
    row('2 M logprobs from JSON', '× JSON.parse (CPU)', json, { atMost: 2 }),
  ];
}

await main(import.meta.url, measureDecoding);
