import { concat, from, lastValueFrom, of, take, throwError, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { getRenderer, type Renderer, type ResponseDelta } from '../../../src/chat/renderers/index.js';
import { ByteTokenizer } from '../../../src/chat/tokenizer/index.js';
import { recordedFamilies } from '../../parity/renderersRecorded.js';

const families = new Map(recordedFamilies().map(({ family, tokenizer }) => [family.family, tokenizer]));
const make = (family: string, name: string): Renderer => getRenderer(name, families.get(family)!);
const bytes = getRenderer('tinker_rx_bytes', new ByteTokenizer());

/** Tokens of a response written with special tokens in double brackets: `[[</think>]]`. */
function tokens(renderer: Renderer, text: string): number[] {
  return text
    .split(/\[\[(.*?)\]\]/)
    .flatMap((part, index) =>
      index % 2 === 1 ? [renderer.tokenizer.tokenId(part)] : [...renderer.tokenizer.encode(part)],
    );
}

describe('why a response ended', () => {
  const qwen = make('qwen3', 'qwen3');

  it('stop, end of text, or neither', () => {
    expect(qwen.parse(tokens(qwen, 'hi[[<|im_end|>]]')).termination).toBe('stop');
    expect(qwen.parse(tokens(qwen, 'hi')).termination).toBe('malformed');
    expect(qwen.parse([]).termination).toBe('malformed');
  });

  it('the end-of-text token counts as the last one only', () => {
    const base = getRenderer('role_colon', families.get('llama3')!);
    const end = base.tokenizer.eosTokenId!;
    expect(base.parse([...base.tokenizer.encode(' Hi.'), end])).toMatchObject({
      text: 'Hi.',
      termination: 'end_of_text',
    });
    expect(base.parse([...base.tokenizer.encode(' Hi.\n\nUser:'), end]).termination).toBe('malformed');
  });

  it('more than one stop token is malformed, and what comes after the first is not read', () => {
    const response = qwen.parse(tokens(qwen, 'one[[<|im_end|>]]two[[<|im_end|>]]'));
    expect([response.text, response.termination]).toEqual(['one', 'malformed']);
  });
});

describe('what the prompt left open', () => {
  const qwen35 = make('qwen3_5', 'qwen3_5');
  const deepseek = make('deepseek_v3', 'deepseekv3_thinking');

  it('reads reasoning from the first token', () => {
    expect(qwen35.parse(tokens(qwen35, 'why[[</think>]]\n\nso[[<|im_end|>]]'))).toMatchObject({
      thinking: 'why',
      text: 'so',
    });
  });

  it('keeps a truncated thought a thought', () => {
    expect(qwen35.parse(tokens(qwen35, 'why not'))).toMatchObject({
      thinking: 'why not',
      text: '',
      termination: 'malformed',
    });
  });

  it('can be told otherwise', () => {
    expect(qwen35.parse(tokens(qwen35, 'so[[<|im_end|>]]'), { start: 'text' })).toMatchObject({
      thinking: '',
      text: 'so',
    });
  });

  it('DeepSeek V3 opens no block after tool results, so a whole response without one is text', () => {
    expect(deepseek.parse(tokens(deepseek, 'so[[<｜end▁of▁sentence｜>]]'))).toMatchObject({
      thinking: '',
      text: 'so',
      termination: 'stop',
    });
    expect(deepseek.parse(tokens(deepseek, 'so'))).toMatchObject({
      thinking: 'so',
      text: '',
      termination: 'malformed',
    });
  });
});

describe('calls', () => {
  it('text that only looks like a call is text', () => {
    const qwen = make('qwen3', 'qwen3');
    const text = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>';
    const response = qwen.parse([...qwen.tokenizer.encode(text), qwen.tokenizer.tokenId('<|im_end|>')]);
    expect([response.text, response.toolCalls, response.unparsedToolCalls]).toEqual([text, [], []]);
  });

  it('keeps what could not be read, with the reason', () => {
    const qwen = make('qwen3', 'qwen3');
    const response = qwen.parse(tokens(qwen, 'a\n[[<tool_call>]]\n{"name": \n[[</tool_call>]][[<|im_end|>]]'));
    expect(response.text).toBe('a');
    expect(response.unparsedToolCalls).toEqual([
      { rawText: '<tool_call>\n{"name": \n</tool_call>', error: expect.stringContaining('Invalid JSON') as string },
    ]);
    expect(response.message.unparsedToolCalls).toEqual(response.unparsedToolCalls);
  });

  it('a block that never closes is a call that did not parse', () => {
    const kimi = make('kimi_k2', 'kimi_k2');
    const open =
      '[[<|tool_calls_section_begin|>]][[<|tool_call_begin|>]]functions.f:0[[<|tool_call_argument_begin|>]]{}';
    expect(kimi.parse(tokens(kimi, `${open}[[<|im_end|>]]`)).unparsedToolCalls[0]?.error).toContain(
      'unterminated tool block',
    );
    const closed = kimi.parse(tokens(kimi, `${open}[[<|tool_call_end|>]][[<|im_end|>]]`));
    expect([closed.toolCalls.length, closed.unparsedToolCalls.length]).toEqual([1, 1]);
  });
});

describe('calls of the embedded models', () => {
  const read = (text: string) => bytes.parse(tokens(bytes, text));

  it('a turn may say something and call several tools', () => {
    const { text, toolCalls, termination } = read(
      'Wait.[[<|tool|>]]{"name": "add", "arguments": {"a": 1}}[[<|tool|>]]{"name": "now", "arguments": {}}[[<|end|>]]',
    );
    expect({ text, toolCalls, termination }).toEqual({
      text: 'Wait.',
      toolCalls: [
        { name: 'add', arguments: '{"a": 1}' },
        { name: 'now', arguments: '{}' },
      ],
      termination: 'stop',
    });
  });

  it('what is written is what is read, and a call in plain text is text', () => {
    const message = {
      role: 'assistant',
      content: '{"name": "x"}',
      toolCalls: [{ name: 'add', arguments: '{"a": 1}' }],
    };
    const written = bytes.buildSupervisedExample([message]).modelInput.toInts();
    expect(bytes.parse(written.slice(1)).message).toEqual(message);
  });

  it('a call that was cut off, or is no JSON, did not parse', () => {
    expect(read('[[<|tool|>]]{"name": "add", "argu').unparsedToolCalls[0]?.error).toBe('unterminated tool call');
    expect(read('[[<|tool|>]]add(1)[[<|end|>]]').unparsedToolCalls[0]?.error).toMatch('Invalid JSON');
  });

  it('declares its tools in the system turn, a line each', () => {
    const tool = { name: 'add', description: 'Adds.', parameters: {} };
    const prompt = bytes.buildGenerationPrompt(bytes.declareTools([tool], 'Be brief.'));
    expect(bytes.tokenizer.decode(prompt.toInts())).toBe(
      '<|system|>Be brief.\n{"name": "add", "description": "Adds.", "parameters": {}}<|end|><|assistant|>',
    );
  });
});

describe('streams', () => {
  const text = (deltas: readonly ResponseDelta[]) =>
    deltas.map((delta) => (delta.type === 'text' ? delta.text : `(${delta.type})`));

  it('holds back incomplete characters and trailing white space, and nothing else', async () => {
    const emoji = [...new TextEncoder().encode('é \n!')];
    const deltas = await lastValueFrom(from([...emoji, 256]).pipe(bytes.parseStream(), toArray()));
    expect(text(deltas)).toEqual(['(header)', 'é', ' \n!', '(end)']);
  });

  it('tells text, thinking and calls apart as they come', async () => {
    const qwen = make('qwen3', 'qwen3');
    const sampled = tokens(
      qwen,
      '[[<think>]]\nwhy\n[[</think>]]\n\nso\n[[<tool_call>]]\n{"name": "f", "arguments": {"a": 1}}\n[[</tool_call>]][[<|im_end|>]]',
    );
    const deltas = await lastValueFrom(of(sampled).pipe(qwen.parseStream(), toArray()));
    expect(deltas.slice(0, -1)).toEqual([
      { type: 'header', role: 'assistant' },
      { type: 'thinking', thinking: 'why', contentIndex: 0 },
      { type: 'text', text: 'so', contentIndex: 1 },
      { type: 'tool-call', call: { name: 'f', arguments: '{"a": 1}' } },
    ]);
  });

  it('is cold: each subscription reads on its own, and may leave early', async () => {
    const stream = of([104, 105], 256).pipe(bytes.parseStream());
    expect(text(await lastValueFrom(stream.pipe(toArray())))).toEqual(['(header)', 'hi', '(end)']);
    expect(text(await lastValueFrom(stream.pipe(take(2), toArray())))).toEqual(['(header)', 'hi']);
    expect(text(await lastValueFrom(stream.pipe(toArray())))).toEqual(['(header)', 'hi', '(end)']);
  });

  it('passes errors through without an end', async () => {
    const broken = concat(
      of(104),
      throwError(() => new Error('cut')),
    ).pipe(bytes.parseStream());
    const seen: string[] = [];
    await new Promise<void>((resolve) =>
      broken.subscribe({
        next: (delta) => seen.push(delta.type),
        error: (error: Error) => (seen.push(error.message), resolve()),
      }),
    );
    expect(seen).toEqual(['header', 'text', 'cut']);
  });

  it('role_colon holds back what may become its stop signal', async () => {
    const base = getRenderer('role_colon', families.get('llama3')!);
    const chunks = [' a', '\n\nUse', 'd b', '\n\n', 'User:'].map((piece) => base.tokenizer.encode(piece));
    const deltas = await lastValueFrom(from(chunks).pipe(base.parseStream(), toArray()));
    expect(text(deltas).join('')).toBe('(header)a\n\nUsed b(end)');
    expect(deltas.at(-1)).toMatchObject({ response: { termination: 'stop' } });
  });
});
