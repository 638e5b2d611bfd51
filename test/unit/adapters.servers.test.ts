import { describe, expect, it } from 'vitest';
import { servingHint } from '../../src/adapters/servers.js';

describe('servingHint', () => {
  it.each([
    ['deepseek-ai/DeepSeek-V3.1', false, /serve no adapters of DeepSeek V3: .*merge/],
    ['moonshotai/Kimi-K2.5', true, /serve no adapters of Kimi K2.5/],
    ['openai/gpt-oss-20b', true, /no vLLM is known to load a trained output matrix of gpt-oss.*--no-train-unembed/],
    ['Qwen/Qwen3.5-9B', true, /trained output matrix of Qwen3.5 from version 0\.29\.0 on.*--no-train-unembed/],
  ])('%s, with its output matrix: %s', (model, trainsOutput, hint) => {
    expect(servingHint(model, trainsOutput)).toMatch(hint);
  });
  it.each([
    ['openai/gpt-oss-20b', false],
    ['Qwen/Qwen3-8B', true],
    ['meta-llama/Llama-3.1-8B', true],
    ['tinker-rx/tiny', true],
  ])('has nothing to say about %s, with its output matrix: %s', (model, trainsOutput) => {
    expect(servingHint(model, trainsOutput)).toBeUndefined();
  });
});
