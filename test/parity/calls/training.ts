import { ModelInput, type Datum, type LossFnType } from 'tinker-rx';
import type { Play, Stage } from '../support/stage.js';
import { CHUNKS, ONES, TENSORS, datum, datums } from './data.js';

const RATIO = { logprobs: [-0.5, -0.25, -0.125], advantages: [1, 0, -1] };
const CLIP = { clip_low_threshold: 0.875, clip_high_threshold: 1.25 };
const LOSSES: readonly (readonly [LossFnType, readonly Datum[], Readonly<Record<string, number | string>>?])[] = [
  ['cross_entropy', [datum({ weights: [0, 1, 0.5] })]],
  ['importance_sampling', [datum(RATIO)]],
  ['ppo', [datum(RATIO)], CLIP],
  ['ppo', [datum({ ...RATIO, clip_low_threshold: [0.5, 0.5, 0.5], clip_high_threshold: [1.5, 1.5, 1.5] })]],
  ['cispo', [datum(RATIO)], CLIP],
  ['dro', [datum(RATIO)], { beta: 0.05 }],
  ['gspo', [datum({ ...RATIO, sequence_ratio_mask: [0, 1, 1] })], CLIP],
  ['stable_reinforce', [datum(RATIO)], { kl_coeff: 0.1, baseline: 'leave-one-out' }],
  ['cross_entropy', [datum({ weights: [1, 0, 1] }), datum(ONES)]],
  ['stable_reinforce', [datum(RATIO)], { whole: 1 }],
  ['custom', [datum(ONES)], { loss_id: 'session-1:loss:0' }],
];

const repeated = (length: number, count: number): number[] => new Array<number>(count).fill(length);

const bulk =
  (lengths: readonly number[]): Play =>
  async (stage) => {
    const trainer = await stage.trainer();
    const output = await trainer.forwardBackward(datums(lengths), 'cross_entropy');
    const summary = { metrics: output.metrics, outputs: output.lossFnOutputs.length };
    await stage.result('forward_backward', Promise.resolve(summary));
  };

async function each(stage: Stage, data: Readonly<Record<string, Datum>>): Promise<void> {
  const trainer = await stage.trainer();
  for (const [kind, entry] of Object.entries(data)) {
    await stage.result(kind, trainer.forwardBackward([entry], 'cross_entropy'));
  }
}

/** Targets 1, 2 … to the end of a text, else 1, 2. */
function chunkDatum(chunks: (typeof CHUNKS)[string]): Datum {
  const modelInput = new ModelInput(chunks);
  const isText = chunks.every((chunk) => chunk.type === 'encoded_text');
  const length = isText ? modelInput.length : 2;
  return { modelInput, lossFnInputs: { target_tokens: Array.from({ length }, (_, index) => index + 1) } };
}

export const training: Readonly<Record<string, Play>> = {
  'forward-backward': async (stage) => {
    const trainer = await stage.trainer();
    for (const [lossFn, data, lossFnConfig] of LOSSES) {
      const options = lossFnConfig === undefined ? {} : { lossFnConfig };
      await stage.result(`forward_backward ${lossFn}`, trainer.forwardBackward(data, lossFn, options));
    }
  },
  forward: async (stage) => {
    const trainer = await stage.trainer();
    await stage.result('forward', trainer.forward([datum(ONES)], 'cross_entropy'));
    await stage.result('forward ppo', trainer.forward([datum(RATIO)], 'ppo', { lossFnConfig: CLIP }));
  },
  pipelined: async (stage) => {
    const trainer = await stage.trainer();
    const futures: PromiseLike<unknown>[] = [];
    for (let step = 0; step < 3; step++) {
      futures.push(trainer.forwardBackward([datum(ONES)], 'cross_entropy'));
      futures.push(trainer.optimStep({ learningRate: (step + 1) / 8 }));
    }
    futures.push(trainer.saveState('after-three'));
    for (const future of futures) await stage.result('pipelined', future);
  },
  tensors: (stage) => each(stage, TENSORS),
  'chunks-training': (stage) =>
    each(stage, Object.fromEntries(Object.entries(CHUNKS).map(([kind, chunks]) => [kind, chunkDatum(chunks)]))),
  provenance: async (stage) => {
    const trainer = await stage.trainer();
    const plain: Datum = {
      modelInput: ModelInput.fromInts([1, 2, 3, 4]),
      lossFnInputs: { target_tokens: [2, 3, 4, 5], weights: [0, 0, 1, 1] },
    };
    const first = 'session-1:sample:0:0:0';
    const spans: Datum = {
      ...plain,
      modelInputSpans: [
        { type: 'prompt', sequenceId: first, length: 2 },
        { type: 'sampled', sequenceId: first, length: 1 },
        { type: 'sampled', sequenceId: 'session-1:sample:0:1:0', offset: 5, length: 1 },
      ],
      lossFnInputSpans: [
        { type: 'prompt', sequenceId: first, offset: 1, length: 1 },
        { type: 'sampled', sequenceId: first, length: 3 },
      ],
    };
    await stage.result('forward_backward', trainer.forwardBackward([spans, plain], 'cross_entropy'));
  },
  'chunking-serial': async (stage) => {
    const trainer = await stage.trainer();
    const batches = [repeated(1, 8), repeated(5, 4), [20, 1, 1], [1, 20, 1], [1, 1, 20], [12, 1, 6, 6, 1], [13]];
    for (const lengths of batches) {
      const call = `forward_backward [${lengths.join(', ')}]`;
      await stage.result(call, trainer.forwardBackward(datums(lengths), 'cross_entropy'));
    }
    await stage.result('forward [1, 1, 1, 1]', trainer.forward(datums([1, 1, 1, 1]), 'cross_entropy'));
    await stage.result('optim_step', trainer.optimStep());
  },
  'chunking-parallel': async (stage) => {
    const trainer = await stage.trainer();
    const both = [trainer.forwardBackward(datums(repeated(1, 8)), 'cross_entropy'), trainer.optimStep()] as const;
    await stage.result('forward_backward', both[0]);
    await stage.result('optim_step', both[1]);
  },
  'chunking-default-count': bulk(repeated(1, 2100)),
  'chunking-default-bytes': bulk(repeated(8000, 90)),
  'optim-step': async (stage) => {
    const trainer = await stage.trainer();
    await stage.result('adam', trainer.optimStep());
    const every = { learningRate: 3e-5, beta1: 0.8, beta2: 0.999, eps: 1e-8, weightDecay: 0.01, gradClipNorm: 1 };
    await stage.result('adam, every field', trainer.optimStep(every));
    await stage.result('adam_params', trainer.optimStep({ learningRate: 0.25 }));
    await stage.result('dimuon', trainer.optimStep({ type: 'dimuon', learningRate: 0.02 }));
    const dimuon = { type: 'dimuon', learningRate: 0.02, gradClipNorm: 1, beta1: 0.5 } as const;
    await stage.result('dimuon, every field', trainer.optimStep(dimuon));
    await stage.result('lion', trainer.optimStep({ type: 'lion', learning_rate: 0.001 }));
  },
  'custom-loss-client': async (stage) => {
    const trainer = await stage.trainer();
    const data = [datum(), datum({ weights: [1, 0, 1], advantages: [1, 1, 1] })];
    const future = trainer.forwardBackwardCustom(data, (_data, logprobs) => ({
      loss: logprobs.flatMap((row) => [...row]).reduce((sum, value) => sum + value * value, 0),
      gradients: logprobs.map((row) => row.map((value) => 2 * value)),
      metrics: { 'squares:sum': 2.5 },
    }));
    await stage.result('forward_backward_custom', future);
    await stage.result('optim_step', trainer.optimStep());
  },
};
