import { ModelInput, SamplingClient, TensorData, type SamplingParams } from 'tinker-rx';
import { API_KEY, BASE_MODEL, type Play, type Stage } from '../support/stage.js';
import { CHUNKS, PARAMS, PROMPT } from './data.js';

const SAMPLE = { prompt: PROMPT, numSamples: 1, samplingParams: PARAMS };
const PATH = 'tinker://run-1/sampler_weights/0001';

const PARAMETERS: Readonly<Record<string, SamplingParams>> = {
  nothing: {},
  max_tokens: PARAMS,
  'every number': { maxTokens: 3, seed: 7, temperature: 0.5, topK: 20, topP: 0.875 },
  greedy: { maxTokens: 3, temperature: 0 },
  'stop text': { maxTokens: 3, stop: '\n\n' },
  'stop texts': { maxTokens: 3, stop: ['\n\n', 'Ende: ü'] },
  'stop tokens': { maxTokens: 3, stop: [151643, 0] },
  'stop nothing': { maxTokens: 3, stop: [] },
};

const ids = (data: readonly number[], sparse?: TensorData['sparse']): TensorData =>
  new TensorData({ dtype: 'int64', data: Int32Array.from(data), shape: [4, 2], ...(sparse ? { sparse } : {}) });
const CSR = { crowIndices: Int32Array.of(0, 1, 1, 1, 2), colIndices: Int32Array.of(0, 1) };
const OPTIONS: Readonly<Record<string, Partial<Parameters<SamplingClient['sample']>[0]>>> = {
  'three samples': { numSamples: 3 },
  include_prompt_logprobs: { includePromptLogprobs: true },
  prompt_logprobs_last_n: { includePromptLogprobs: true, promptLogprobsLastN: 2 },
  topk_prompt_logprobs: { includePromptLogprobs: true, topkPromptLogprobs: 2 },
  topk_sample_logprobs: { numSamples: 2, topkSampleLogprobs: 2 },
  target_prompt_logprobs: { targetPromptLogprobs: ids([7, -1, 8, 9, -1, -1, 3, 4]) },
  'target_prompt_logprobs sparse': { targetPromptLogprobs: ids([7, 9], CSR) },
  prompt_alt_tokens_k: { promptAltTokensK: 2 },
};

/** A clone number n is drawn when the random number is (n − 1) / 10⁹. */
const cloneFrom = (stage: Stage, handle: string, clone: number): SamplingClient =>
  SamplingClient.fromSamplerHandle(handle, {
    apiKey: API_KEY,
    transport: stage.replay.transport,
    random: () => (clone - 0.5) / 1e9,
  });

async function fromHandle(stage: Stage): Promise<void> {
  const sampler = await stage.sampler();
  const handle = sampler.getSamplerHandle();
  const clones = [cloneFrom(stage, handle, 42), cloneFrom(stage, handle, 43)];
  for (const clone of clones) {
    await stage.result('sample', clone.sample(SAMPLE));
    await stage.result('sample', clone.sample(SAMPLE));
  }
  await stage.result('original', sampler.sample(SAMPLE));
}

/** As the SDK's list has it: null where there is no logprob. */
const withNulls = (logprobs: Float32Array): (number | null)[] =>
  Array.from(logprobs, (value) => (Number.isNaN(value) ? null : value));

export const sampling: Readonly<Record<string, Play>> = {
  'create-sampler': async (stage) => {
    const service = stage.service();
    const sampler = await service.createSamplingClient({ baseModel: BASE_MODEL });
    await service.createSamplingClient({ modelPath: PATH });
    await service.createSamplingClient({ modelPath: PATH, baseModel: BASE_MODEL });
    await stage.result('get_base_model', sampler.getBaseModel());
  },
  'sampling-params': async (stage) => {
    const sampler = await stage.sampler();
    for (const [call, samplingParams] of Object.entries(PARAMETERS)) {
      await stage.result(call, sampler.sample({ prompt: PROMPT, numSamples: 1, samplingParams }));
    }
  },
  'sample-options': async (stage) => {
    const sampler = await stage.sampler();
    for (const [call, options] of Object.entries(OPTIONS)) {
      await stage.result(call, sampler.sample({ ...SAMPLE, ...options }));
    }
  },
  'record-stability-info': async (stage) => {
    const sampler = await stage.sampler({ recordStabilityInfo: true });
    await stage.result('sample', sampler.sample(SAMPLE));
  },
  'compute-logprobs': async (stage) => {
    const sampler = await stage.sampler();
    await stage.result('compute_logprobs', sampler.computeLogprobs(PROMPT).then(withNulls));
    await stage.result('compute_logprobs last_n', sampler.computeLogprobs(PROMPT, { lastN: 2 }).then(withNulls));
  },
  'sampling-seq-ids': async (stage) => {
    const service = stage.service();
    const samplers = [
      await service.createSamplingClient({ baseModel: BASE_MODEL }),
      await service.createSamplingClient({ baseModel: BASE_MODEL }),
    ];
    for (const sampler of samplers) {
      const futures = Array.from({ length: 4 }, () => sampler.sample(SAMPLE));
      for (const future of futures) await stage.result('sample', future);
    }
  },
  'chunks-sampling': async (stage) => {
    const sampler = await stage.sampler();
    for (const [kind, chunks] of Object.entries(CHUNKS)) {
      const prompt = new ModelInput(chunks);
      await stage.result(kind, sampler.sample({ ...SAMPLE, prompt }));
    }
  },
  'sampler-handle': fromHandle,
  'sampler-handle-join': fromHandle,
};
