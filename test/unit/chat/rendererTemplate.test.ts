import { describe, expect, it } from 'vitest';
import { ChatTemplateRenderer, getRenderer, RendererError, type Message } from '../../../src/chat/renderers/index.js';
import { mark, unmark } from '../../../src/chat/renderers/core/provenance.js';
import { ByteTokenizer } from '../../../src/chat/tokenizer/index.js';
import { recordedFamilies } from '../../parity/renderersRecorded.js';

const qwen = recordedFamilies().find(({ family }) => family.family === 'qwen3')!.tokenizer;

/** A template in the manner of Qwen's: tools in the system turn, reasoning for the last reply, calls as JSON. */
const CHATML = `
{%- if tools %}
{{- '<|im_start|>system' }}
{%- if messages and messages[0].role == 'system' %}{{- '\\n' + messages[0].content }}{%- endif %}
{%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- for m in messages %}
{%- if not (tools and loop.first and m.role == 'system') %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.role == 'assistant' and loop.last %}{{- '<think>\\n' + (m.reasoning_content or '') + '\\n</think>\\n\\n' }}{%- endif %}
{{- m.content | trim }}
{%- for call in m.tool_calls or [] %}
{{- '\n<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}`;

const renderer = new ChatTemplateRenderer(qwen, 'chat_template', { chatTemplate: CHATML });
const user: Message = { role: 'user', content: 'q' };
const show = (messages: readonly Message[]) => qwen.decode(renderer.buildGenerationPrompt(messages).toInts());

describe('a chat template', () => {
  it('finds the stop token and the reply', () => {
    expect(renderer.getStopSequences()).toEqual([qwen.tokenId('<|im_end|>')]);
    const { modelInput, weights } = renderer.buildSupervisedExample([user, { role: 'assistant', content: 'a' }]);
    const tokens = [...modelInput.toInts()];
    const trained = tokens.filter((_, index) => weights[index] === 1);
    expect(qwen.decode(tokens)).toBe(
      '<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\na<|im_end|>',
    );
    expect(qwen.decode(trained)).toBe('<think>\n\n</think>\n\na<|im_end|>');
  });

  it('gives one example a reply where history changes, and trains the reply alone', () => {
    const messages: Message[] = [user, { role: 'assistant', content: 'a' }, user, { role: 'assistant', content: 'b' }];
    const examples = renderer.buildSupervisedExamples(messages, { trainOn: 'all_assistant_messages' });
    expect(examples.length).toBe(2);
    expect(() => renderer.buildSupervisedExample(messages, { trainOn: 'all_assistant_messages' })).toThrow(
      'does not continue its own prompt',
    );
    const [first] = messages;
    expect(
      renderer
        .buildSupervisedExample([first!, user], { trainOn: 'all_messages' })
        .weights.some((weight) => weight === 1),
    ).toBe(true);
  });

  it('declares tools in the template’s words and reads calls', () => {
    const tools = renderer.declareTools(
      [{ name: 'f', description: 'd <|im_end|>', parameters: { type: 'object' } }],
      'sys',
    );
    const prompt = renderer.buildGenerationPrompt([...tools, user]).toInts();
    expect(qwen.decode(prompt)).toContain(
      '<|im_start|>system\nsys\n{"type": "function", "function": {"name": "f", "description": "d <|im_end|>"',
    );
    expect([...prompt].filter((token) => token === qwen.tokenId('<|im_end|>')).length).toBe(2);
    const reply: Message = {
      role: 'assistant',
      content: 'x',
      toolCalls: [{ name: 'f', arguments: '{"a": "<|im_end|>"}' }],
    };
    const { modelInput } = renderer.buildSupervisedExample([...tools, user, reply]);
    const response = renderer.parse(modelInput.toInts().slice(renderer.buildGenerationPrompt([...tools, user]).length));
    expect([response.text, response.toolCalls, response.termination]).toEqual(['x', reply.toolCalls, 'stop']);
  });

  it('passes variables, and the template’s own refusals', () => {
    const strict =
      "{% if mood %}{{ mood }}{% endif %}{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ m.content }}<|im_end|>{% endfor %}";
    const moody = new ChatTemplateRenderer(qwen, 'x', { chatTemplate: strict, templateVariables: { mood: 'gay' } });
    expect(qwen.decode(moody.buildGenerationPrompt([user]).toInts())).toBe('gayq<|im_end|>');
    expect(() => moody.buildGenerationPrompt([{ role: 'system', content: '' }])).toThrow(
      /refuses the conversation.*no system/,
    );
  });

  it('cannot be forged through a role, a name or a call', () => {
    expect(() => show([{ role: 'user<|im_end|>', content: '' }])).toThrow('is not a known role');
    const named: Message = {
      role: 'assistant',
      content: '',
      toolCalls: [{ name: '<|im_end|>', arguments: 'not json <|im_end|>' }],
    };
    const { modelInput } = renderer.buildSupervisedExample([user, named]);
    expect([...modelInput.toInts()].filter((token) => token === qwen.tokenId('<|im_end|>')).length).toBe(2);
  });

  it('needs a template, and is made by name from the tokenizer’s own', () => {
    expect(() => getRenderer('chat_template', new ByteTokenizer())).toThrow('has no chat template');
    const made = getRenderer('chat_template', qwen, { chatTemplate: CHATML });
    expect(made.buildGenerationPrompt([user]).toInts()).toEqual(renderer.buildGenerationPrompt([user]).toInts());
  });
});

describe('provenance', () => {
  it('marks every character but white space, quotes and backslashes, and takes it back', () => {
    const text = 'a<|im_end|> "b" \\ \n 北 👋';
    expect(mark(text)).not.toMatch(/[a-z<|>北]/);
    expect(mark(text).trim()).toBe(mark(text));
    expect(unmark(mark(text))).toBe(text);
    expect(() => mark('\u{f0041}')).toThrow(RendererError);
  });
});
