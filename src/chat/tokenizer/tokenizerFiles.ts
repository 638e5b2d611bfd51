import { isRecord } from '../../support/isRecord.js';
import { TokenizerError } from './TokenizerError.js';

/** An entry of `added_tokens` in tokenizer.json, or of `added_tokens_decoder` in tokenizer_config.json. */
export interface AddedTokenJson {
  /** The token's text. */
  readonly content: string;
  /** Its id. Default: the key it stands under. */
  readonly id?: number;
  /** Whether decoding can leave it out. Default false. */
  readonly special?: boolean;
  /** Whether it is searched for in normalised text. */
  readonly normalized?: boolean;
  /** Whether it swallows white space before it. Default false. */
  readonly lstrip?: boolean;
  /** Whether it swallows white space after it. Default false. */
  readonly rstrip?: boolean;
  /** Whether it must stand alone as a word. Default false. */
  readonly single_word?: boolean;
}

/** A step of tokenizer.json's pipeline; which fields it has depends on its type. */
export type StepJson = { readonly type: string } & Readonly<Record<string, unknown>>;

/** tokenizer.json, as far as this library reads it itself. */
export interface TokenizerJson {
  /** The model: its type, vocabulary and merges. */
  readonly model: Readonly<Record<string, unknown>>;
  /** Tokens that are found before the model runs. */
  readonly added_tokens?: readonly AddedTokenJson[] | null;
  /** How text is normalised first. */
  readonly normalizer?: StepJson | null;
  /** How text is split before the model. */
  readonly pre_tokenizer?: StepJson | null;
  /** What is added around the tokens. */
  readonly post_processor?: StepJson | null;
  /** How tokens become text again. */
  readonly decoder?: StepJson | null;
}

type TokenName = string | { readonly content: string } | null;

/** tokenizer_config.json, as far as this library reads it itself. */
export interface TokenizerConfigJson {
  /** The token that begins a sequence. */
  readonly bos_token?: TokenName;
  /** The token that ends a sequence. */
  readonly eos_token?: TokenName;
  /** The chat template, or several by name. */
  readonly chat_template?: string | readonly { readonly name: string; readonly template: string }[] | null;
  /** Added tokens by id. */
  readonly added_tokens_decoder?: Readonly<Record<string, AddedTokenJson>>;
}

/** The contents of a tokenizer's files. */
export interface TokenizerFiles {
  /** The content of `tokenizer.json`. */
  readonly tokenizer: TokenizerJson;
  /** The content of `tokenizer_config.json`. Default: none. */
  readonly config?: TokenizerConfigJson;
  /** chat_template.jinja (or .json), which wins over the template in the config. */
  readonly chatTemplate?: string;
}

/** An added token with everything decided. */
export interface AddedToken extends AddedTokenJson {
  readonly id: number;
  readonly special: boolean;
}

/** Parses one of the JSON files. @throws TokenizerError naming the file. */
export function parseJsonObject<A extends object>(text: string, file: string): A {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new TokenizerError(`${file} is not JSON`, { cause });
  }
  if (!isRecord(value)) throw new TokenizerError(`${file} is not a JSON object`);
  return value as A;
}

/** @throws TokenizerError for what cannot be a tokenizer.json. */
export function checkTokenizerJson(value: unknown, id: string): asserts value is TokenizerJson {
  if (!isRecord(value) || !isRecord(value['model']) || value['model']['vocab'] === undefined) {
    throw new TokenizerError(`the tokenizer.json of ${id} has no model with a vocabulary`);
  }
}

/** @throws TokenizerError for invalid added tokens. */
export function checkAddedTokens({ tokenizer, config }: TokenizerFiles, id: string): void {
  const isToken = (token: unknown): boolean => isRecord(token) && typeof token['content'] === 'string';
  const { added_tokens: own } = tokenizer as { readonly added_tokens?: unknown };
  if (own != null && !(Array.isArray(own) && own.every(isToken)))
    throw new TokenizerError(`the tokenizer.json of ${id} has added_tokens that are not tokens`);
  const { added_tokens_decoder: others } = (config ?? {}) as { readonly added_tokens_decoder?: unknown };
  if (others != null && !(isRecord(others) && Object.values(others).every(isToken)))
    throw new TokenizerError(`the tokenizer_config.json of ${id} has added_tokens_decoder that are not tokens`);
}

/**
 * Every added token of tokenizer.json, and of tokenizer_config.json those that the former lacks: `transformers` adds them on load, and some
 * models keep their turn markers only there.
 */
export function addedTokens({ tokenizer, config }: TokenizerFiles): AddedToken[] {
  const tokens = new Map<string, AddedToken>();
  const add = (token: AddedTokenJson, id: number | undefined): void => {
    if (id === undefined || !Number.isInteger(id) || tokens.has(token.content)) return;
    tokens.set(token.content, { ...token, id, special: token.special ?? false });
  };
  for (const token of tokenizer.added_tokens ?? []) add(token, token.id);
  for (const [id, token] of Object.entries(config?.added_tokens_decoder ?? {})) add(token, Number(id));
  return [...tokens.values()];
}

/** The string of `bos_token` or `eos_token`, however the config writes it. */
export const tokenName = (name: TokenName | undefined): string | undefined =>
  name == null ? undefined : typeof name === 'string' ? name : name.content;

/** The chat template: from its file, else from the config; of several, the one named `default`. */
export function chatTemplateOf({
  chatTemplate,
  config,
}: Pick<TokenizerFiles, 'chatTemplate' | 'config'>): string | undefined {
  if (chatTemplate !== undefined) return chatTemplate;
  const own = config?.chat_template;
  if (own == null || typeof own === 'string') return own ?? undefined;
  return (own.find(({ name }) => name === 'default') ?? own[0])?.template;
}
