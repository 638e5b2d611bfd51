import type { ModelShape } from '../engine/model/shapes.js';

/** A frozen tensor of a model, row major. A matrix is [outputs, inputs]. bf16 values are the upper halves of float32. */
export type StoredTensor =
  | { readonly shape: readonly number[]; readonly dtype: 'f32'; readonly data: Float32Array }
  | { readonly shape: readonly number[]; readonly dtype: 'bf16'; readonly data: Uint16Array };

/** A language model on disk, of which nothing but the header was read: a Hugging Face folder or a GGUF file. */
export interface OpenedModel {
  readonly shape: ModelShape;
  /** Sampling stops at these tokens unless a request says otherwise. */
  readonly endTokens: readonly number[];
  /** The shape of a tensor; undefined if there is none of that name. */
  readonly tensorShape: (name: string) => readonly number[] | undefined;
  /** Reads one tensor by its Hugging Face name, such as `model.layers.0.self_attn.q_proj.weight`. */
  readonly tensor: (name: string) => Promise<StoredTensor>;
  /** The bytes of each token, by id; empty for special ones. Stop texts are matched over them; without it only token ids stop. */
  readonly tokenBytes?: (() => readonly Uint8Array[]) | undefined;
  /** Files of the tokenizer by name (`tokenizer.json`, `tokenizer_config.json`, …), as Hugging Face lays them out. */
  readonly tokenizerFiles: Readonly<Record<string, string>>;
  readonly close: () => Promise<void>;
}
