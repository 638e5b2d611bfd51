/**
 * How the names and layouts of an adapter relate to those of its base model.
 *
 * The service writes `base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight`, the output matrix as `model.unembed_tokens`, and the
 * experts of a layer together: `mlp.experts.w1` (gate), `w3` (up), `w2` (down), three-dimensional, where a first dimension of 1 is shared by all.
 */

/** What is known of a base model without reading its weights. */
export interface BaseFacts {
  readonly config: Readonly<Record<string, unknown>>;
  /** Names of all its tensors. */
  readonly keys: ReadonlySet<string>;
}

export interface ModelFamily {
  readonly modelType: string;
  /** The base model's name of a module that the service names `model.layers.0.…`. */
  readonly baseName: (module: string) => string;
  /** The name that servers of adapters know the module by. */
  readonly servedName: (module: string) => string;
  /** w1, w2, w3 in the base model's words. */
  readonly expertNames: Readonly<Record<string, string>>;
  /** Modules that are trained apart and are rows of one module of the base model, in this order. */
  readonly joined: Readonly<Record<string, readonly string[]>>;
  /** Servers of adapters know the joined module only. */
  readonly servedJoined: boolean;
  /** Where experts are one tensor: whether its rows are inputs, and whether gate and up take turns in it. */
  readonly experts: { readonly rowsAreInputs: boolean; readonly interleaved: boolean };
  /** The base model has no separate output matrix: it uses the embeddings. */
  readonly tiedHead: boolean;
  /** Tensor of the embeddings, for a tied head. */
  readonly embeddings: string;
  /** The base model's name of its output matrix. */
  readonly head: string;
}

const GATED = { w1: 'gate_proj', w2: 'down_proj', w3: 'up_proj' };

/** Recognizes the family of a base model by its configuration and the names of its tensors. */
export function modelFamily({ config, keys }: BaseFacts): ModelFamily {
  const modelType = typeof config['model_type'] === 'string' ? config['model_type'] : '';
  const some = (test: (key: string) => boolean): boolean => [...keys].some(test);
  const inner = some((key) => key.startsWith('model.language_model.'));
  const outer = !inner && some((key) => key.startsWith('language_model.model.'));
  const heads = [...keys].filter((key) => /(^|\.)lm_head\.weight$/.test(key));
  const head = heads[0]?.replace(/\.weight$/, '') ?? (outer ? 'language_model.lm_head' : 'lm_head');
  const embeddings = [...keys].find((key) => key.endsWith('.embed_tokens.weight')) ?? 'model.embed_tokens.weight';
  const place = (module: string): string => {
    if (module === 'model.unembed_tokens' || module === 'lm_head' || module === 'model.lm_head') return head;
    const named = modelType === 'gpt_oss' ? module.replace(/\.attn(?=\.|$)/, '.self_attn') : module;
    if (inner && !named.startsWith('model.language_model.')) return named.replace(/^model\./, 'model.language_model.');
    return outer ? named.replace(/^model\./, 'language_model.model.') : named;
  };
  const isNemotron = modelType === 'nemotron_h';
  return {
    modelType,
    baseName: isNemotron ? (module) => place(module).replace(/^model\.layers\./, 'backbone.layers.') : place,
    servedName: place,
    // Its experts have no gate: w3 is an empty placeholder.
    expertNames: isNemotron ? { w1: 'up_proj', w2: 'down_proj' } : GATED,
    joined: isNemotron
      ? { in_proj: ['gate_proj', 'x_proj'] }
      : modelType.startsWith('qwen3_5')
        ? { in_proj_qkv: ['in_proj_q', 'in_proj_k', 'in_proj_v'] }
        : {},
    servedJoined: isNemotron,
    experts: {
      rowsAreInputs: modelType === 'gpt_oss' || modelType === 'qwen3_vl_moe',
      interleaved: modelType === 'gpt_oss',
    },
    tiedHead: heads.length === 0,
    embeddings,
    head,
  };
}
