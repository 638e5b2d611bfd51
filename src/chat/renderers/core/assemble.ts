import type { ModelInputChunk } from '../../../wire/chunk.js';
import { ModelInput } from '../../../wire/modelInput.js';
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

/** Joins an example into the one after it when that one begins with the same input: the same losses, read once. */
export function joinExtensions(examples: readonly SupervisedExample[]): SupervisedExample[] {
  const joined: SupervisedExample[] = [];
  for (const example of examples) {
    const last = joined.at(-1);
    if (last === undefined || !extendsInput(last.modelInput, example.modelInput)) {
      joined.push(example);
      continue;
    }
    const weights = Float32Array.from(example.weights);
    last.weights.forEach((weight, index) => (weights[index] = Math.max(weight, weights[index] ?? 0)));
    joined[joined.length - 1] = { modelInput: example.modelInput, weights };
  }
  return joined;
}

function extendsInput(shorter: ModelInput, longer: ModelInput): boolean {
  const flat = (input: ModelInput): unknown[] =>
    input.chunks.flatMap((chunk): unknown[] => {
      if (chunk.type === 'encoded_text') return [...chunk.tokens];
      if (chunk.type === 'image') return [chunk.data];
      return [chunk.type === 'dmel' ? chunk.dmel : chunk.location];
    });
  const whole = flat(longer);
  return flat(shorter).every((item, index) => item === whole[index]);
}
