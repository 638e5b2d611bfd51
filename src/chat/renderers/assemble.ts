import type { ModelInputChunk } from '../../wire/chunk.js';
import { ModelInput } from '../../wire/modelInput.js';
import type { Run } from './pieces.js';
import type { SupervisedExample } from './Renderer.js';

/** Tokens with their weight; the first `free` of them carry none. */
export interface WeightedRun {
  readonly run: Run;
  readonly weight: number;
  readonly free?: number;
}

/** Joins runs into one input, neighbouring text in one chunk, and lays out the weights beside it. */
export function assemble(weighted: readonly WeightedRun[]): SupervisedExample {
  const chunks: ModelInputChunk[] = [];
  const weights: number[] = [];
  let tokens: number[] = [];
  const flush = (): void => {
    if (tokens.length > 0) chunks.push({ type: 'encoded_text', tokens: Int32Array.from(tokens) });
    tokens = [];
  };
  for (const { run, weight, free = 0 } of weighted) {
    if ('tokens' in run) {
      run.tokens.forEach((token, index) => {
        tokens.push(token);
        weights.push(index < free ? 0 : weight);
      });
    } else {
      flush();
      chunks.push(run.chunk);
      for (let i = 0; i < run.length; i++) weights.push(weight);
    }
  }
  flush();
  return { modelInput: new ModelInput(chunks), weights: Float32Array.from(weights) };
}
