// How fast a forward-backward body of 1,024 × 2,048 tokens is written, beside a plain copy of as many bytes, in one run.
import { ModelInput } from '../dist/index.js';
import { encodeForwardBackwardRequest, prepareDatum } from '../dist/wire/index.js';

const DATUMS = 1024;
const TOKENS = 2048;
const ROUNDS = 12;

export function benchEncoding() {
  const data = Array.from({ length: DATUMS }, (_, index) => {
    const tokens = Int32Array.from({ length: TOKENS }, (_, at) => (index * 31 + at * 7919) % 150_000);
    const weights = new Float32Array(TOKENS).fill(1);
    return prepareDatum(
      { modelInput: ModelInput.fromInts(tokens), lossFnInputs: { target_tokens: tokens, weights } },
      index,
    );
  });
  const request = { modelId: 'model', seqId: 1, data, lossFn: 'cross_entropy', forwardOnly: false };
  let bytes = 0;
  const best = (work) => {
    let seconds = Infinity;
    for (let round = 0; round < ROUNDS; round++) {
      const start = performance.now();
      work();
      seconds = Math.min(seconds, (performance.now() - start) / 1000);
    }
    return bytes / 1e6 / seconds;
  };
  bytes = encodeForwardBackwardRequest(request).length;
  const encoded = best(() => encodeForwardBackwardRequest(request));
  const body = encodeForwardBackwardRequest(request);
  const copied = best(() => new Uint8Array(body.length).set(body));
  console.log(`encode      ${encoded.toFixed(0).padStart(6)} MB/s for ${(bytes / 1e6).toFixed(1)} MB`);
  console.log(`plain copy  ${copied.toFixed(0).padStart(6)} MB/s`);
  return { megabytesPerSecond: encoded };
}

if (process.argv[1] === new URL(import.meta.url).pathname) benchEncoding();
