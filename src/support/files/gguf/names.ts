/** Hugging Face's names of tensors → GGUF's, for the architectures that are read here. */
const TOP: Readonly<Record<string, string>> = {
  'model.embed_tokens.weight': 'token_embd.weight',
  'model.norm.weight': 'output_norm.weight',
  'lm_head.weight': 'output.weight',
};
const LAYER: Readonly<Record<string, string>> = {
  input_layernorm: 'attn_norm',
  post_attention_layernorm: 'ffn_norm',
  'self_attn.q_proj': 'attn_q',
  'self_attn.k_proj': 'attn_k',
  'self_attn.v_proj': 'attn_v',
  'self_attn.o_proj': 'attn_output',
  'self_attn.q_norm': 'attn_q_norm',
  'self_attn.k_norm': 'attn_k_norm',
  'mlp.gate_proj': 'ffn_gate',
  'mlp.up_proj': 'ffn_up',
  'mlp.down_proj': 'ffn_down',
};

/** GGUF's name of a tensor; undefined for one that it has no name for here. */
export function ggufName(tensor: string): string | undefined {
  const [, layer, module, kind] = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(tensor) ?? [];
  if (layer === undefined) return TOP[tensor];
  const part = LAYER[module!];
  return part === undefined ? undefined : `blk.${layer}.${part}.${kind}`;
}

/** Hugging Face's name of a tensor; undefined for one that it has no name for here. */
export function huggingFaceName(tensor: string): string | undefined {
  const [, layer, part, kind] = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/.exec(tensor) ?? [];
  const named = (names: Readonly<Record<string, string>>, value: string | undefined) =>
    Object.keys(names).find((name) => names[name] === value);
  if (layer === undefined) return named(TOP, tensor);
  const module = named(LAYER, part);
  return module === undefined ? undefined : `model.layers.${layer}.${module}.${kind}`;
}

/** Whether GGUF has the rows of a Llama's matrix in another order. */
export const isInterleaved = (tensor: string): boolean => /self_attn\.[qk]_proj\.weight$/.test(tensor);

/**
 * GGUF has the two halves of a Llama's rotary pairs side by side: rows 0, 1, 2, 3, … of a head are rows 0, d/2, 1, d/2 + 1, … of Hugging
 * Face's. This puts rows of `columns` values back in its order.
 */
export function separateHalves(values: Float32Array, columns: number, headWidth: number): Float32Array {
  const half = headWidth / 2;
  return moveRows(values, columns, headWidth, (row) => 2 * (row % half) + Math.floor(row / half));
}

/** The other way. */
export function interleaveHalves(values: Float32Array, columns: number, headWidth: number): Float32Array {
  return moveRows(values, columns, headWidth, (row) => Math.floor(row / 2) + (row % 2) * (headWidth / 2));
}

/** Rows of each head, taken from where `from` says. */
function moveRows(
  values: Float32Array,
  columns: number,
  headWidth: number,
  from: (row: number) => number,
): Float32Array {
  const moved = new Float32Array(values.length);
  for (let row = 0; row < values.length / columns; row++) {
    const head = row - (row % headWidth);
    const source = (head + from(row % headWidth)) * columns;
    moved.set(values.subarray(source, source + columns), row * columns);
  }
  return moved;
}
