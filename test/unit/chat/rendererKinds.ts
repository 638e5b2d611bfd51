import type { Message, Renderer } from '../../../src/chat/renderers/index.js';
import { ChatTemplateRenderer, getRenderer } from '../../../src/chat/renderers/index.js';
import { ByteTokenizer } from '../../../src/chat/tokenizer/index.js';
import { recordedFamilies } from '../../parity/renderersRecorded.js';

/** A renderer and what its format can carry, for tests that run over all of them. */
export interface Kind {
  readonly renderer: Renderer;
  /** Replies may carry reasoning. */
  readonly thinking: boolean;
  readonly tools: boolean;
  /** Visible text of replies loses its outer white space. */
  readonly trims: boolean;
  /** Reasoning loses white space (`all`), newlines, or nothing at its ends. */
  readonly trimsThinking: 'all' | 'newlines' | 'nothing';
  /** The tokenizer normalises text to NFC. */
  readonly nfc: boolean;
}

const TEMPLATE =
  "{{ bos_token }}{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/** Every built-in renderer, each on the recorded tokenizer of its family. */
export function kinds(): Kind[] {
  const all: Kind[] = [];
  for (const { family, tokenizer } of recordedFamilies()) {
    for (const name of Object.keys(family.renderers)) {
      all.push(kindOf(getRenderer(name, tokenizer, { currentDate: '2026-01-02' }), family.tokenizer.nfc));
    }
    if (family.family === 'qwen3')
      all.push(kindOf(new ChatTemplateRenderer(tokenizer, 'chat_template', { chatTemplate: TEMPLATE }), true));
  }
  all.push(kindOf(getRenderer('tinker_rx_bytes', new ByteTokenizer()), false));
  return all;
}

function kindOf(renderer: Renderer, nfc: boolean): Kind {
  const { name } = renderer;
  const plain = [
    'role_colon',
    'llama3',
    'tinker_rx_bytes',
    'chat_template',
    'deepseekv3',
    'qwen3_instruct',
    'qwen3_vl_instruct',
  ];
  const thinking = !plain.includes(name) && !name.endsWith('disable_thinking');
  const tools = !['role_colon', 'llama3', 'chat_template'].includes(name);
  const qwen35 = name.startsWith('qwen3_5') || name.startsWith('qwen3_8');
  return {
    renderer,
    thinking,
    tools,
    nfc,
    trims: qwen35 || name.startsWith('glm') || name.startsWith('nemotron'),
    trimsThinking: qwen35 || name.startsWith('nemotron') ? 'all' : name.startsWith('qwen3') ? 'newlines' : 'nothing',
  };
}

/** The tokens of a supervised example that are not in the prompt before its last message. */
export function sampled({ renderer }: Kind, messages: readonly Message[]): number[] {
  const prompt = renderer.buildGenerationPrompt(messages.slice(0, -1)).toInts();
  return [...renderer.buildSupervisedExample(messages).modelInput.toInts()].slice(prompt.length);
}

export function isPrefix(shorter: ArrayLike<number>, longer: ArrayLike<number>): boolean {
  if (shorter.length > longer.length) return false;
  for (let i = 0; i < shorter.length; i++) if (shorter[i] !== longer[i]) return false;
  return true;
}
