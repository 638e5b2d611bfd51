import type { ModelInput } from '../../wire/modelInput.js';
import { expectedOf, promptOf } from './taskText.js';
import type { Message } from '../renderers/core/Message.js';
import type { DecisionRenderer, LabelInput } from './labels.js';

/** What is decided, and how it is asked. Train and decide with the same. */
export interface DecisionOptions<P> {
  /** Writes conversations as tokens. One that lets the model think first cannot decide. */
  readonly renderer: DecisionRenderer;
  /** The possible answers: at least two, whose first tokens differ. */
  readonly labels: readonly string[];
  /** Stands before every conversation as the system prompt. Default: none. */
  readonly system?: string;
  /** What is asked about a row. Default: its `messages`, `prompt`, `question`, `input` or `text`, or the row itself if it is text. */
  readonly ask?: (row: P) => string | readonly Message[];
}

/** The prompt whose next token is the decision. */
export function decisionPrompt<P>(row: P, { renderer, system, ask = promptOf }: DecisionOptions<P>): ModelInput {
  const asked = ask(row);
  const messages: readonly Message[] = typeof asked === 'string' ? [{ role: 'user', content: asked }] : asked;
  return renderer.buildGenerationPrompt(
    system === undefined ? messages : [{ role: 'system', content: system }, ...messages],
  );
}

/** The label of a row: its `label`, which may be soft, else what it expects by the usual names. */
export function labelOf(row: unknown): LabelInput | undefined {
  const label = (row as { readonly label?: unknown } | null)?.label;
  if (typeof label === 'object' && label !== null) return label as Readonly<Record<string, number>>;
  return ['string', 'number', 'boolean'].includes(typeof label) ? String(label) : expectedOf(row);
}
