// The output of a forward-backward pass with 2 million logprobs, decoded: node decodeRun.mjs <{ format, repeats }>.
// Prints, as JSON, the CPU of each repeat over that of the least that any decoder has to do: copy the bytes, or parse the JSON.
import { decodeForwardBackwardOutput, ForwardBackwardOutputJson, TensorData } from '../../dist/wire/index.js';
import { encodeForwardBackwardOutput } from '../../dist/wire/proto/forwardBackwardOutput.js';

const DATUMS = 1024;
const TOKENS = 2048;
const { format, repeats } = JSON.parse(process.argv[2]);
const data = Float32Array.from({ length: TOKENS }, (_, at) => -Math.abs(Math.sin(at)) * 8);

function protobuf() {
  const tensor = new TensorData({ dtype: 'float32', data, shape: [TOKENS] });
  const lossFnOutputs = Array.from({ length: DATUMS }, () => ({ logprobs: tensor }));
  const bytes = encodeForwardBackwardOutput({ lossFnOutputType: 'Logprobs', lossFnOutputs, metrics: {} });
  return { least: () => bytes.slice(), decode: () => decodeForwardBackwardOutput(bytes), times: 24 };
}

function json() {
  const tensor = { data: Array.from(data), dtype: 'float32', shape: [TOKENS] };
  const loss_fn_outputs = Array.from({ length: DATUMS }, () => ({ logprobs: tensor }));
  const text = JSON.stringify({ loss_fn_output_type: 'Logprobs', loss_fn_outputs, metrics: {} });
  const decode = () => {
    const decoded = ForwardBackwardOutputJson.decode(JSON.parse(text));
    if (decoded._tag === 'Left') throw new Error('the canned output does not decode');
    return decoded.right;
  };
  return { least: () => JSON.parse(text), decode, times: 3 };
}

const { least, decode, times } = format === 'protobuf' ? protobuf() : json();
/** The CPU of many in a row, so that each side pays for its own garbage; what was there before is collected first. */
const time = (work) => {
  globalThis.gc();
  const start = process.cpuUsage();
  for (let at = 0; at < times; at++) work();
  const { user, system } = process.cpuUsage(start);
  return user + system;
};

const measured = [];
// The first rounds warm the compiler up.
for (let repeat = -3; repeat < repeats; repeat++) {
  const [first, second] = repeat % 2 === 0 ? [least, decode] : [decode, least];
  const [one, other] = [time(first), time(second)];
  if (repeat >= 0) measured.push(first === decode ? one / other : other / one);
}
console.log(JSON.stringify(measured));
