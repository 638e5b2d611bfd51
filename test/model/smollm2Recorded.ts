import { readFileSync } from 'node:fs';
import type { EngineDatum } from '../../src/local/engine/types.js';

interface Recorded {
  readonly stride: number;
  readonly prompts: readonly {
    readonly text: string;
    readonly tokens: readonly number[];
    readonly logits: string;
    readonly logsumexp: string;
    readonly greedy: readonly number[];
  }[];
  readonly lora: { readonly rank: number };
  readonly batch: readonly { readonly tokens: readonly number[]; readonly start: number }[];
  readonly gradients: {
    readonly loss: number;
    readonly factors: Readonly<Record<string, { readonly norm: number; readonly first: readonly number[] }>>;
  };
  readonly adam: {
    readonly learningRate: number;
    readonly beta1: number;
    readonly beta2: number;
    readonly eps: number;
  };
  readonly losses: readonly number[];
}
/** Made by record_smollm2.py, which says what the fields are. */
export const recorded = JSON.parse(
  readFileSync(new URL('../parity/recorded/smollm2.json', import.meta.url), 'utf8'),
) as Recorded;
export const floats = (base64: string) => new Float32Array(new Uint8Array(Buffer.from(base64, 'base64')).buffer);

/** The batch of the recorded gradients and losses. */
export const batch = (): EngineDatum[] =>
  recorded.batch.map(({ tokens, start }) => {
    const length = tokens.length - 1;
    const weights = Float32Array.from({ length }, (_, i) => (i >= start - 1 ? 1 : 0));
    return {
      tokens: Int32Array.from(tokens.slice(0, -1)),
      inputs: {
        target_tokens: { dtype: 'int64', data: Int32Array.from(tokens.slice(1)), shape: [length] },
        weights: { dtype: 'float32', data: weights, shape: [length] },
      },
    };
  });
