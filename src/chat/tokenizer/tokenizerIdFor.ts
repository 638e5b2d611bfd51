const LLAMA3 = 'thinkingmachineslabinc/meta-llama-3-instruct-tokenizer';

/** Repositories served under a second name that has no tokenizer. */
const ALIASES: Readonly<Record<string, string>> = { 'moonshotai/Kimi-K2.5-Text-Only': 'moonshotai/Kimi-K2.5' };

const withoutSuffix = (name: string): string => name.split(':', 1)[0] ?? name;

/**
 * Which tokenizer a model uses, by the rules of the service's own SDK.
 *
 * The id that `getInfo` gives wins; without one it follows from the model's name: a `:suffix` is dropped, every Llama 3 shares one ungated
 * repository, and `org/model/variant` reads as `org/model`.
 */
export function tokenizerIdFor(modelName: string, tokenizerId?: string): string {
  const id = tokenizerId === undefined ? idFromName(withoutSuffix(modelName)) : withoutSuffix(tokenizerId);
  return ALIASES[id] ?? id;
}

function idFromName(name: string): string {
  if (name.startsWith('meta-llama/Llama-3')) return LLAMA3;
  const parts = name.split('/');
  return parts.length === 3 ? parts.slice(0, 2).join('/') : name;
}
