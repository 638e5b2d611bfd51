/**
 * Pretrains a base model of the embedded service and writes its weights as bfloat16 to assets/.
 *
 *     npm run build && node scripts/pretrain-local.mjs tinker-rx/tiny --steps 6000
 *
 * Runs on the engine's own forward and backward passes, in one thread. The result depends on the number of steps done,
 * so it is the same again only with --steps instead of --minutes.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { createWriter } from './local-corpus.mjs';

const built = (name) => import(new URL(`../dist/local/engine/${name}.js`, import.meta.url).href);
const { adamStep, createAdamState, resolveAdam } = await built('training/adamw');
const { loadBaseModel, randomBaseWeights } = await built('model/baseModel');
const { Heap } = await built('numeric/heap');
const { createRandom } = await built('numeric/random');
const { decodeSafetensors, encodeSafetensors } = await built('files/safetensors');
const { baseTensors, MODEL_SHAPES } = await built('model/shapes');
const { targetLogprobs, targetLogprobsBackward } = await built('training/targets');
const { Transformer } = await built('model/transformer');
const { encodeText, SPECIAL } = await built('model/vocabulary');

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    steps: { type: 'string' },
    minutes: { type: 'string', default: '8' },
    rate: { type: 'string', default: '0.004' },
    batch: { type: 'string', default: '8' },
    seed: { type: 'string', default: '1' },
  },
});
const shape = MODEL_SHAPES.find(({ name }) => name === (positionals[0] ?? 'tinker-rx/tiny'));
if (shape === undefined) throw new Error(`unknown model ${positionals[0]}`);
const [minutes, peak, batch, seed] = [values.minutes, values.rate, values.batch, values.seed].map(Number);
const steps = values.steps === undefined ? Infinity : Number(values.steps);

const heap = new Heap();
const base = loadBaseModel(heap, shape, randomBaseWeights(shape, seed));
const transformer = new Transformer(heap, base);

/** Every tensor of the base: where it is in the heap, in the flat weights, and its gradient. */
const offsetOf = (name) => {
  if (name === 'model.embed_tokens.weight') return base.embedding.weight;
  if (name === 'model.norm.weight') return base.norms.at(-1);
  const linear = base.linears.find((entry) => `${entry.name}.weight` === name);
  if (linear !== undefined) return linear.weight;
  const [, layer, which] = /layers\.(\d+)\.(input|post_attention)_layernorm/.exec(name);
  return base.norms[2 * Number(layer) + (which === 'input' ? 0 : 1)];
};
let size = 0;
const slots = baseTensors(shape).map(({ name, shape: dimensions }) => {
  const count = dimensions.reduce((a, b) => a * b, 1);
  const slot = { name, shape: dimensions, count, at: size, heap: offsetOf(name), gradient: heap.alloc(count) };
  size += count;
  return slot;
});
const gradientOf = new Map(slots.map((slot) => [slot.heap, slot.gradient]));
const gradients = {
  embedding: gradientOf.get(base.embedding.weight),
  norms: base.norms.map((offset) => gradientOf.get(offset)),
  linears: base.linears.map(({ weight }) => gradientOf.get(weight)),
};
const weights = new Float32Array(size);
for (const slot of slots) weights.set(heap.floats.subarray(slot.heap, slot.heap + slot.count), slot.at);

const MARKERS = { system: SPECIAL.system, user: SPECIAL.user, assistant: SPECIAL.assistant, text: SPECIAL.begin };
/** What others say can seldom be predicted: it counts a little, the assistant's words and plain text count in full. */
const WEIGHTS = { system: 0.1, user: 0.1, assistant: 1, text: 1 };
function tokensOf(turns) {
  const parts = turns.map(({ role, text }) => [MARKERS[role], ...encodeText(text), SPECIAL.end]);
  const weights = parts.flatMap((part, i) => part.map((_, at) => (at === 0 ? 0.1 : WEIGHTS[turns[i].role])));
  return { tokens: Int32Array.from(parts.flat()), weights: Float32Array.from(weights) };
}

/** Mean loss, weighted; leaves the gradient of the sum in the heap. */
function run(documents, backward) {
  const f = heap.floats;
  for (const slot of slots) f.fill(0, slot.gradient, slot.gradient + slot.count);
  let [loss, count] = [0, 0];
  for (const { tokens, weights: all } of documents) {
    const rows = tokens.length - 1;
    const targets = tokens.slice(1);
    const counts = all.slice(1);
    const mark = heap.mark();
    const tape = transformer.forward(tokens.slice(0, rows), undefined, backward ? { tapeFloats: Infinity } : {});
    const { logits, low } = transformer.head(tape.normed, rows, undefined);
    const { logprobs, totals } = targetLogprobs(heap, logits, rows, shape.vocabulary, targets, 1);
    logprobs.forEach((p, i) => (loss -= p * counts[i]));
    count += counts.reduce((a, b) => a + b, 0);
    if (backward) {
      const gradient = counts.map((weight) => -weight);
      targetLogprobsBackward(heap, logits, rows, shape.vocabulary, targets, 1, totals, gradient);
      transformer.headBackward(tape, 0, rows, low, logits, undefined, gradients);
      transformer.backward(tape, undefined, gradients);
    }
    heap.release(mark);
  }
  return { loss: loss / count, count };
}

const writer = createWriter(createRandom(seed, 1));
const held = createWriter(createRandom(seed, 2));
const heldOut = Array.from({ length: 64 }, () => tokensOf(held.document()));
const state = createAdamState(size);
const flat = new Float32Array(size);
const begun = performance.now();
let seen = 0;
for (let step = 0; step < steps; step++) {
  const elapsed = (performance.now() - begun) / 60_000;
  const progress = Number.isFinite(steps) ? step / steps : elapsed / minutes;
  if (progress >= 1) break;
  const { loss, count } = run(
    Array.from({ length: batch }, () => tokensOf(writer.document())),
    true,
  );
  seen += count;
  for (const slot of slots) flat.set(heap.floats.subarray(slot.gradient, slot.gradient + slot.count), slot.at);
  for (let i = 0; i < size; i++) flat[i] /= count;
  const warm = Math.min(1, (step + 1) / 50);
  const learningRate = peak * warm * (0.02 + 0.98 * 0.5 * (1 + Math.cos(Math.PI * progress)));
  const adam = resolveAdam({ learningRate, beta1: 0.9, beta2: 0.98, eps: 1e-8, weightDecay: 0.02, gradClipNorm: 1 });
  adamStep(weights, flat, state, adam);
  for (const slot of slots) heap.floats.set(weights.subarray(slot.at, slot.at + slot.count), slot.heap);
  if (step % 250 === 0)
    console.log(
      `step ${step}  loss ${loss.toFixed(3)}  ${seen.toFixed(0)} weighted tokens  ${(elapsed * 60).toFixed(0)} s`,
    );
}

const tensors = Object.fromEntries(
  slots.map((slot) => [slot.name, { shape: slot.shape, data: weights.slice(slot.at, slot.at + slot.count) }]),
);
const file = encodeSafetensors(tensors, { dtype: 'BF16', metadata: { format: 'pt', base_model: shape.name } });
const path = new URL(`../assets/${shape.name.replace('/', '-')}.safetensors`, import.meta.url);
writeFileSync(path, file);
// What users get is rounded: measure that.
const rounded = decodeSafetensors(file).tensors;
for (const slot of slots) heap.floats.set(rounded[slot.name].data, slot.heap);
console.log(
  `${state.step} steps, ${seen.toFixed(0)} weighted tokens; held out ${run(heldOut, false).loss.toFixed(3)} nats per token; ${file.length} bytes`,
);
