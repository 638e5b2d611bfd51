import type { StepJson, TokenizerJson } from '../tokenizerFiles.js';

const GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

const split = (pattern: string): StepJson => ({
  type: 'Split',
  pattern: { Regex: pattern },
  behavior: 'Isolated',
  invert: false,
});

/**
 * tokenizer.json with its pre-tokenizers as plain splits. In Rust, Digits cuts at every number (½ and ² too), which the library's own step does
 * not; and GPT-2's pattern, which ByteLevel brings along, is then read like any other.
 */
export function withPlainSteps(json: TokenizerJson): TokenizerJson {
  if (json.pre_tokenizer == null) return json;
  const steps = plain(json.pre_tokenizer);
  return { ...json, pre_tokenizer: steps.length === 1 ? steps[0]! : { type: 'Sequence', pretokenizers: steps } };
}

function plain(step: StepJson): readonly StepJson[] {
  if (step.type === 'Sequence') return (step['pretokenizers'] as readonly StepJson[]).flatMap(plain);
  if (step.type === 'Digits') return [split(step['individual_digits'] === true ? '\\p{N}' : '\\p{N}+')];
  if (step.type === 'ByteLevel' && step['use_regex'] !== false && step['add_prefix_space'] === false)
    return [split(GPT2), { ...step, use_regex: false }];
  return [step];
}
