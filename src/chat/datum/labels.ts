import { ValidationError } from '../../wire/tinkerError.js';
import type { Renderer } from '../renderers/core/Renderer.js';
import { remainderAfter } from './chunks.js';

/** What decisions need of a renderer. Those of `tinker-rx/chat` are such. */
export type DecisionRenderer = Pick<Renderer, 'buildGenerationPrompt' | 'buildSupervisedExample'>;

/** A label, or how likely each label is; what is not named has no share. */
export type LabelInput = string | Readonly<Record<string, number>>;

/** Any question will do: the answer starts with the same token after each. */
const QUESTION = [{ role: 'user', content: '?' }] as const;

/**
 * The token with which an answer of each label starts, as the renderer writes it.
 *
 * @throws ValidationError unless there are two labels or more, and all start with different tokens
 */
export function labelTokens(renderer: DecisionRenderer, labels: readonly string[]): Int32Array {
  if (labels.length < 2) throw new ValidationError(`a decision needs at least two labels, got ${labels.length}`);
  const prompt = renderer.buildGenerationPrompt(QUESTION);
  const tokens = labels.map((label) => {
    const { modelInput } = renderer.buildSupervisedExample([...QUESTION, { role: 'assistant', content: label }]);
    const [first] = remainderAfter(prompt.chunks, modelInput.chunks) ?? [];
    if (label === '' || first?.type !== 'encoded_text')
      throw new ValidationError(`the renderer cannot write the label '${label}' right after its prompt`);
    return first.tokens[0]!;
  });
  labels.forEach((label, place) => {
    const other = tokens.indexOf(tokens[place]!);
    if (other !== place)
      throw new ValidationError(
        `labels '${labels[other]}' and '${label}' start with the same token: choose labels that start differently, such as A and B`,
      );
  });
  return Int32Array.from(tokens);
}

/**
 * The share of each label, in the order of `labels`; they sum to 1.
 *
 * @throws ValidationError for a label that is not listed, a share below 0, or shares that sum to 0
 */
export function labelShares(label: LabelInput | undefined, labels: readonly string[]): readonly number[] {
  if (label === undefined) throw new ValidationError('the row has no label');
  const given = typeof label === 'string' ? { [label]: 1 } : label;
  for (const [name, share] of Object.entries(given)) {
    if (!labels.includes(name))
      throw new ValidationError(`'${name}' is not one of the labels ${labels.map((each) => `'${each}'`).join(', ')}`);
    if (!(share >= 0 && share < Infinity))
      throw new ValidationError(`the share of '${name}' must be a number >= 0, got ${share}`);
  }
  const shares = labels.map((name) => given[name] ?? 0);
  const total = shares.reduce((sum, share) => sum + share, 0);
  if (total === 0) throw new ValidationError('the shares of the labels sum to 0');
  return shares.map((share) => share / total);
}
