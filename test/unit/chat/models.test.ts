import { describe, expect, it } from 'vitest';
import { getLr, loraParameterCount, MODEL_FACTS, modelFacts } from '../../../src/chat/models/index.js';
import { MODEL_RENDERERS } from '../../../src/chat/models/modelFacts.js';

describe('getLr', () => {
  it.each([
    ['meta-llama/Llama-3.1-8B', 2.856415e-4],
    ['Qwen/Qwen3-8B', 4.729791e-4],
  ])('%s: %f', (model, rate) => {
    expect(Math.abs(getLr(model) / rate - 1)).toBeLessThan(1e-6);
  });

  it('is a tenth without LoRA', () => {
    expect(getLr('Qwen/Qwen3-8B', { isLora: false })).toBeCloseTo(4.729791e-5, 11);
  });

  it('ignores a suffix, and takes the hidden size of a model it does not know', () => {
    expect(getLr('Qwen/Qwen3-8B:peft:32768')).toBe(getLr('Qwen/Qwen3-8B'));
    expect(getLr('me/my-qwen', { hiddenSize: 4096 })).toBe(getLr('Qwen/Qwen3-8B'));
  });

  it('is an error for other families, and without a hidden size', () => {
    expect(() => getLr('openai/gpt-oss-20b')).toThrow(/no learning rate has been fitted for openai\/gpt-oss-20b/);
    expect(() => getLr('tinker-rx/tiny')).toThrow(RangeError);
    expect(() => getLr('Qwen/Qwen9-1B')).toThrow(/the hidden size of Qwen\/Qwen9-1B is not known: pass hiddenSize/);
    expect(() => getLr('Qwen/Qwen3-8B', { hiddenSize: 0 })).toThrow(RangeError);
  });
});

describe('loraParameterCount', () => {
  it('of Qwen3-8B at rank 1 is 2,883,968', () => {
    expect(loraParameterCount('Qwen/Qwen3-8B', { rank: 1 })).toBe(2_883_968);
  });

  it('grows with the rank and shrinks with what is not trained', () => {
    expect(loraParameterCount('Qwen/Qwen3-8B')).toBe(32 * 2_883_968);
    expect(loraParameterCount('Qwen/Qwen3-8B', { rank: 1, trainMlp: false, trainAttn: false })).toBe(156_032);
  });

  it('is an error for nothing, a broken rank, an unknown model', () => {
    const none = { trainMlp: false, trainAttn: false, trainUnembed: false };
    expect(() => loraParameterCount('Qwen/Qwen3-8B', none)).toThrow(RangeError);
    expect(() => loraParameterCount('Qwen/Qwen3-8B', { rank: 0.5 })).toThrow(/rank must be an integer >= 1, got 0.5/);
    expect(() => loraParameterCount('toString')).toThrow(/no facts are known about toString/);
  });
});

describe('the table', () => {
  it('has the models that have renderers, but for those that only the embedded service runs', () => {
    const without = Object.keys(MODEL_RENDERERS).filter((model) => MODEL_FACTS[model] === undefined);
    expect(without).toEqual([
      'tinker-rx/tiny',
      'tinker-rx/small',
      'HuggingFaceTB/SmolLM2-135M-Instruct',
      'HuggingFaceTB/SmolLM2-360M-Instruct',
      'HuggingFaceTB/SmolLM2-1.7B-Instruct',
      'Qwen/Qwen3-0.6B',
      'Qwen/Qwen3-1.7B',
      'meta-llama/Llama-3.2-1B-Instruct',
    ]);
    expect(Object.keys(MODEL_FACTS)).toHaveLength(44);
  });

  it('tells what a model takes', () => {
    expect(modelFacts('thinkingmachines/Inkling')).toMatchObject({ takesImages: true, takesAudio: true, isChat: true });
    expect(modelFacts('Qwen/Qwen3-8B-Base')).toMatchObject({ takesImages: false, takesAudio: false, isChat: false });
  });
});
