import fc from 'fast-check';
import { from, lastValueFrom, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Message, ParsedResponse, ResponseDelta, ToolCall } from '../../../src/chat/renderers/index.js';
import { textOf, thinkingOf } from '../../../src/chat/renderers/index.js';
import { isPrefix, kinds, sampled, type Kind } from './rendererKinds.js';

const RUNS = { numRuns: 15 };

/** Text with everything that formats stumble over: the family's own markers, tags, newlines, Han, emoji. */
function texts({ renderer, nfc }: Kind): fc.Arbitrary<string> {
  const markers = [...renderer.tokenizer.specialTokens.keys()];
  const odd = [
    '\n',
    '\n\n',
    ' ',
    '你好',
    '👩🏽‍🚀',
    "it's",
    '<think>',
    '</think>',
    '<tool_call>',
    '<function=f>',
    '{"a": 1}',
    '<',
    '｜',
    '|>',
  ];
  const part = fc.oneof(
    { weight: 3, arbitrary: fc.string({ unit: 'grapheme', maxLength: 8 }) },
    { weight: 2, arbitrary: fc.constantFrom(...odd) },
    { weight: 2, arbitrary: fc.constantFrom(...markers) },
  );
  // Planes 15 and 16 are what the template renderer marks text with.
  const text = fc
    .array(part, { minLength: 1, maxLength: 5 })
    .map((parts) => parts.join('').replace(/[\u{f0000}-\u{10ffff}]/gu, ''));
  return text.map((value) => (nfc ? value.normalize('NFC') : value));
}

/** A reply whose text is what its format gives back. */
function replies(kind: Kind): fc.Arbitrary<Message> {
  const { renderer, thinking, tools, trims, trimsThinking } = kind;
  const clean = (text: string): string => {
    if (renderer.name === 'role_colon') return text.replaceAll('User:', 'You:').replace(/\n+$/, '');
    const trimmed = trims ? text.trim() : text;
    return renderer.name.startsWith('qwen3') ? trimmed.replace(/^\n+|\n+$/g, '') : trimmed;
  };
  const text = texts(kind).map((value) => `${clean(value)}.`.replace(/^\.$/, 'ok'));
  const thought = texts(kind).map((value) => {
    if (trimsThinking === 'all') return value.trim();
    return trimsThinking === 'newlines' ? value.replace(/^\n+|\n+$/g, '') : value;
  });
  const call: fc.Arbitrary<ToolCall> = fc
    .tuple(fc.constantFrom('get_weather', 'search'), texts(kind), fc.integer(), fc.boolean())
    .map(([name, q, n, b]) => ({
      name,
      arguments: `{"b": ${String(b)}, "n": ${n}, "q": ${JSON.stringify(`x ${q.trim()} y`)}}`,
    }));
  return fc
    .record({
      text,
      thought: fc.option(thought),
      calls: fc.array(call, { maxLength: renderer.name.startsWith('gpt_oss') ? 1 : 2 }),
      quiet: fc.boolean(),
    })
    .map(({ text: said, thought: mind, calls, quiet }): Message => {
      const toolCalls = tools ? calls : [];
      const visible = quiet && toolCalls.length > 0 ? '' : said;
      const reasons = thinking && mind !== null && mind !== '';
      return {
        role: 'assistant',
        content: reasons
          ? [
              { type: 'thinking', thinking: mind },
              ...(visible === '' ? [] : [{ type: 'text' as const, text: visible }]),
            ]
          : visible,
        ...(toolCalls.length > 0 ? { toolCalls: withIds(kind, toolCalls) } : {}),
      };
    });
}

function withIds({ renderer }: Kind, calls: readonly ToolCall[]): ToolCall[] {
  if (!renderer.name.startsWith('kimi')) return [...calls];
  return calls.map((call, index) => ({ ...call, id: `functions.${call.name}:${index}` }));
}

/** What a reader of the reply should get. */
function meaning(message: Message): object {
  return { text: textOf(message), thinking: thinkingOf(message), calls: message.toolCalls ?? [] };
}

const opening: readonly Message[] = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Hi' },
];

describe.each(kinds().map((kind) => [kind.renderer.name, kind] as const))('%s', (_, kind) => {
  const { renderer } = kind;
  const { tokenizer } = renderer;
  const specials = new Set(tokenizer.specialTokens.values());
  const stops = renderer.getStopSequences();

  it('the generation prompt is a prefix of the supervised example, and carries no loss', () => {
    fc.assert(
      fc.property(texts(kind), replies(kind), (question, reply) => {
        const asked: Message[] = [opening[0]!, { role: 'user', content: question }];
        const prompt = renderer.buildGenerationPrompt(asked).toInts();
        const { modelInput, weights } = renderer.buildSupervisedExample([...asked, reply]);
        expect(isPrefix(prompt, modelInput.toInts())).toBe(true);
        expect(weights.length).toBe(modelInput.length);
        expect(weights.slice(0, prompt.length).every((weight) => weight === 0)).toBe(true);
        expect(weights.slice(prompt.length).every((weight) => weight === 1)).toBe(true);
      }),
      RUNS,
    );
  });

  it('parses back what it renders', () => {
    fc.assert(
      fc.property(replies(kind), (reply) => {
        const response = renderer.parse(sampled(kind, [...opening, reply]));
        expect({
          ...meaning(response.message),
          unparsed: response.unparsedToolCalls,
          ended: response.termination,
        }).toEqual({
          ...meaning(reply),
          unparsed: [],
          ended: 'stop',
        });
      }),
      RUNS,
    );
  });

  it('no text can forge a turn marker, whichever special token is in it', () => {
    const write = (text: string): number[] => {
      const calls: Message['toolCalls'] = kind.tools
        ? withIds(kind, [{ name: 'f', arguments: JSON.stringify({ a: `x${text}` }) }])
        : [];
      const messages: Message[] = [
        ...(kind.tools
          ? renderer.declareTools(
              [{ name: 'f', description: `d${text}`, parameters: { type: 'object', properties: {} } }],
              `s${text}`,
            )
          : [{ role: 'system', content: `s${text}` }]),
        { role: 'user', content: `u${text}` },
        { role: 'assistant', content: `a${text}`, ...(calls.length > 0 ? { toolCalls: calls } : {}) },
        ...(calls.length > 0 ? [{ role: 'tool', content: `t${text}`, name: 'f', toolCallId: 'functions.f:0' }] : []),
        ...(calls.length > 0 ? [] : [{ role: 'user', content: `v${text}` }]),
        {
          role: 'assistant',
          content: kind.thinking
            ? [
                { type: 'thinking', thinking: `h${text}` },
                { type: 'text', text: `b${text}` },
              ]
            : `b${text}`,
        },
      ];
      const tokens = renderer.buildSupervisedExample(messages).modelInput.toInts();
      return [...tokens].filter((token) => specials.has(token));
    };
    const honest = write('');
    // Families reserve up to a thousand of them, so they are tried by the dozen, and one by one when a dozen fails.
    const all = [...tokenizer.specialTokens.keys()];
    for (let i = 0; i < all.length; i += 48) {
      const group = all.slice(i, i + 48);
      if (!same(write(group.join('')), honest))
        for (const special of group) expect([special, write(special)]).toEqual([special, honest]);
      expect(same(write(group.join(' ')), honest)).toBe(true);
    }
    fc.assert(
      fc.property(texts(kind), (text) => same(write(text), honest)),
      RUNS,
    );
  });

  it('writes exactly one stop signal an assistant turn, at its end', () => {
    fc.assert(
      fc.property(replies(kind), (reply) => {
        const tokens = sampled(kind, [...opening, reply]);
        if (typeof stops[0] === 'string') {
          expect(tokenizer.decode(tokens).split(stops[0]).length).toBe(2);
          expect(tokenizer.decode(tokens).endsWith(stops[0])).toBe(true);
        } else {
          const ids = stops as readonly number[];
          expect(tokens.filter((token) => ids.includes(token)).length).toBe(1);
          expect(ids).toContain(tokens.at(-1));
        }
      }),
      RUNS,
    );
  });

  it(
    renderer.hasExtensionProperty
      ? 'each prompt extends the turn before it'
      : 'gives each trained reply the prompt it was sampled from',
    () => {
      fc.assert(
        fc.property(replies(kind), replies(kind), texts(kind), (one, two, question) => {
          const first: Message[] = [...opening, { ...one, toolCalls: [] }];
          const asked: Message[] = [...first, { role: 'user', content: question }];
          if (renderer.hasExtensionProperty) {
            const turn = renderer.buildSupervisedExample(first).modelInput.toInts();
            expect(isPrefix(turn, renderer.buildGenerationPrompt(asked).toInts())).toBe(true);
            return;
          }
          const examples = renderer.buildSupervisedExamples([...asked, two], { trainOn: 'all_assistant_messages' });
          const prompts = [opening, asked].map((messages) => renderer.buildGenerationPrompt(messages).toInts());
          expect(
            prompts.every((prompt) => examples.some(({ modelInput }) => isPrefix(prompt, modelInput.toInts()))),
          ).toBe(true);
        }),
        RUNS,
      );
    },
  );

  it('streams what it parses, however the tokens are cut, whole or truncated', async () => {
    await fc.assert(
      fc.asyncProperty(replies(kind), fc.nat(), fc.integer({ min: 1, max: 5 }), async (reply, cut, size) => {
        const whole = sampled(kind, [...opening, reply]);
        const tokens = cut % 3 === 0 ? whole.slice(0, cut % (whole.length + 1)) : whole;
        const chunks: number[][] = [];
        for (let i = 0; i < tokens.length; i += size) chunks.push(tokens.slice(i, i + size));
        const deltas = await lastValueFrom(from(chunks).pipe(renderer.parseStream(), toArray()));
        const parsed = renderer.parse(tokens);
        expect(deltas[0]).toEqual({ type: 'header', role: 'assistant' });
        expect(deltas.at(-1)).toEqual({ type: 'end', response: parsed });
        expect(join(deltas)).toEqual({ text: parsed.text, thinking: parsed.thinking, calls: parsed.toolCalls });
      }),
      RUNS,
    );
  });

  it('reads any tokens without throwing', () => {
    const ids = [...tokenizer.specialTokens.values(), ...tokenizer.encode('some {"name": "f"} text 你')];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...ids), { maxLength: 30 }), (tokens) => {
        const response: ParsedResponse = renderer.parse(tokens);
        expect(['stop', 'end_of_text', 'malformed']).toContain(response.termination);
      }),
      { numRuns: 100 },
    );
  });
});

function same(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && isPrefix(a, b);
}

function join(deltas: readonly ResponseDelta[]): object {
  return {
    text: deltas.map((delta) => (delta.type === 'text' ? delta.text : '')).join(''),
    thinking: deltas.map((delta) => (delta.type === 'thinking' ? delta.thinking : '')).join(''),
    calls: deltas.flatMap((delta) => (delta.type === 'tool-call' ? [delta.call] : [])),
  };
}
