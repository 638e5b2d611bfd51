// A gateway in a process of its own, over a sampler that answers at once, so that what is measured is the gateway.
import { of } from 'rxjs';
import { getRenderer, tokenizerFromFolder } from '../../dist/chat/index.js';
import { serveSampler } from '../../dist/serve/index.js';

const renderer = getRenderer('qwen3', await tokenizerFromFolder(process.argv[2]));
const [end] = renderer.getStopSequences();
const said = (text) => Int32Array.of(...renderer.tokenizer.encode(text), end);
const short = said('fine');
// Matches `^(a+)+$` after as many tries as there are ways to divide it.
const evil = said(`"${'a'.repeat(40)}!"`);

const sequenceOf = ({ prompt, samplingParams, topkSampleLogprobs: k }) => {
  const wantsEvil = prompt.length < 500 && renderer.tokenizer.decode(prompt.toInts()).includes('(a+)+');
  const tokens = k === undefined ? (wantsEvil ? evil : short) : new Int32Array(samplingParams.maxTokens).fill(100);
  const topk = {
    k,
    length: tokens.length,
    tokenIds: new Int32Array(tokens.length * k).fill(100),
    logprobs: new Float32Array(tokens.length * k),
  };
  return {
    stopReason: k === undefined ? 'stop' : 'length',
    tokens,
    logprobs: new Float32Array(tokens.length),
    ...(k === undefined ? {} : { topkLogprobs: topk }),
  };
};
const promptScores = ({ prompt: { length }, topkPromptLogprobs: k = 0 }) => ({
  promptLogprobs: new Float32Array(length),
  topkPromptLogprobs: {
    k,
    length,
    tokenIds: Int32Array.from({ length: length * k }, (_, cell) => 100 + (cell % k)),
    logprobs: new Float32Array(length * k),
  },
});
const sampler = {
  getBaseModel: async () => 'bench/model',
  getRenderer: async () => renderer,
  sample: (options) =>
    of({
      sequences: Array.from({ length: options.numSamples ?? 1 }, () => sequenceOf(options)),
      promptCacheHitTokens: 0,
      ...(options.includePromptLogprobs ? promptScores(options) : {}),
    }),
};
const { url, apiKey } = await serveSampler(sampler, { contextTokens: 131_072 });
process.send?.({ url, apiKey });
process.on('disconnect', () => process.exit(0));
