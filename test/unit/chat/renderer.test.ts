import { describe, expect, it } from 'vitest';
import {
  getRenderer,
  imageSize,
  inklingImageTokens,
  kimiImageTokens,
  MODEL_RENDERERS,
  qwenImageTokens,
  registeredRenderers,
  RENDERER_NAMES,
  rendererFor,
  RendererError,
  renderersFor,
  registerRenderer,
  type Message,
  type Renderer,
  type TrainOn,
} from '../../../src/chat/index.js';
import { ByteTokenizer } from '../../../src/chat/tokenizer/index.js';
import { recordedFamilies } from '../../parity/renderersRecorded.js';

const bytes = getRenderer('tinker_rx_bytes', new ByteTokenizer());
const families = new Map(recordedFamilies().map(({ family, tokenizer }) => [family.family, tokenizer]));
const make = (family: string, name: string): Renderer => getRenderer(name, families.get(family)!);

const talk: readonly Message[] = [
  { role: 'system', content: 's' },
  { role: 'user', content: 'u' },
  { role: 'assistant', content: 'a' },
  { role: 'user', content: 'v' },
  { role: 'assistant', content: 'b' },
  { role: 'tool', content: 't' },
  { role: 'assistant', content: 'c' },
];

describe('what to train on', () => {
  // Each message is a marker, one letter and the end token.
  const trained = (trainOn: TrainOn, messages = talk): string => {
    const { modelInput, weights } = bytes.buildSupervisedExample(messages, { trainOn });
    expect(modelInput.toInts().length).toBe(3 * messages.length);
    return [...weights].join('').replace(/(...)/g, '$1 ').trim();
  };

  it.each<[TrainOn, string]>([
    ['last_assistant_message', '000 000 000 000 000 000 011'],
    ['last_assistant_turn', '000 000 000 000 011 000 011'],
    ['all_assistant_messages', '000 000 011 000 011 000 011'],
    ['all_messages', '011 011 011 011 011 011 011'],
    ['all_tokens', '111 111 111 111 111 111 111'],
    ['all_user_and_system_messages', '011 011 000 011 000 000 000'],
  ])('%s', (trainOn, expected) => expect(trained(trainOn)).toBe(expected));

  it('customized: the messages whose flag is set', () => {
    const flagged = talk.map((message, index): Message => ({ ...message, trainable: index === 2 || index === 5 }));
    expect(trained('customized', flagged)).toBe('000 000 011 000 000 011 000');
  });

  it('refuses flags that nobody reads, and missing ones that somebody would', () => {
    const flagged: Message[] = [{ role: 'user', content: 'u', trainable: true }];
    expect(() => bytes.buildSupervisedExample(flagged)).toThrow(RendererError);
    expect(() => bytes.buildSupervisedExample(talk, { trainOn: 'customized' })).toThrow(
      'message 0 has no trainable flag',
    );
  });

  it('trains nothing when the conversation does not end with the assistant', () => {
    expect(trained('last_assistant_message', talk.slice(0, 2))).toBe('000 000');
  });
});

describe('examples of a family whose history changes', () => {
  const qwen3 = make('qwen3', 'qwen3');
  const think = (thinking: string, text: string): Message => ({
    role: 'assistant',
    content: [
      { type: 'thinking', thinking },
      { type: 'text', text },
    ],
  });
  const messages: readonly Message[] = [
    { role: 'user', content: 'a' },
    think('one', 'A'),
    { role: 'user', content: 'b' },
    think('two', 'B'),
  ];

  it('one a trained message, each with what sampling saw', () => {
    const examples = qwen3.buildSupervisedExamples(messages, { trainOn: 'all_assistant_messages' });
    const texts = examples.map(({ modelInput }) => qwen3.tokenizer.decode(modelInput.toInts()));
    expect(texts.map((text) => [text.includes('one'), text.includes('two')])).toEqual([
      [true, false],
      [false, true],
    ]);
  });

  it('customized flags choose among replies', () => {
    const flagged = messages.map((message, index): Message => ({ ...message, trainable: index === 1 }));
    expect(qwen3.buildSupervisedExamples(flagged, { trainOn: 'customized' }).length).toBe(1);
  });

  it('refuses modes that need one sequence, and says what to call', () => {
    expect(() => qwen3.buildSupervisedExamples(messages, { trainOn: 'all_tokens' })).toThrow(
      'call buildSupervisedExample',
    );
    expect(
      qwen3.buildSupervisedExample(messages, { trainOn: 'all_tokens' }).weights.every((weight) => weight === 1),
    ).toBe(true);
  });

  it('joins replies that read the same as history', () => {
    const kimi = make('kimi_k25', 'kimi_k25');
    const plain = talk.slice(0, 5);
    expect(kimi.hasExtensionProperty).toBe(false);
    expect(kimi.buildSupervisedExamples(plain, { trainOn: 'all_assistant_messages' }).length).toBe(1);
  });

  it('can keep reasoning in history, for the extension property', () => {
    const kept = getRenderer('qwen3', families.get('qwen3')!, { stripThinkingFromHistory: false });
    expect(kept.hasExtensionProperty).toBe(true);
    const [only, ...rest] = kept.buildSupervisedExamples(messages, { trainOn: 'all_assistant_messages' });
    expect(rest).toEqual([]);
    expect(kept.tokenizer.decode(only!.modelInput.toInts())).toContain('<think>\none\n</think>');
  });
});

describe('thinking turned off', () => {
  it.each([
    'qwen3/qwen3_disable_thinking',
    'qwen3_5/qwen3_5_disable_thinking',
    'kimi_k25/kimi_k25_disable_thinking',
    'nemotron3/nemotron3_disable_thinking',
  ])('%s refuses a produced turn with reasoning', (path) => {
    const [family, name] = path.split('/') as [string, string];
    const reply: Message = {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'hm' },
        { type: 'text', text: 'x' },
      ],
    };
    expect(() => make(family, name).buildSupervisedExample([{ role: 'user', content: 'q' }, reply])).toThrow(
      'thinking turned off',
    );
  });
});

describe('prompts', () => {
  it('takes another role and a prefill, which is text', () => {
    const prompt = (options: object) => [...bytes.buildGenerationPrompt(talk.slice(0, 2), options).toInts()].slice(6);
    expect(prompt({})).toEqual([259]);
    expect(prompt({ role: 'user' })).toEqual([258]);
    expect(prompt({ prefill: '<|end|>' })).toEqual([259, ...new TextEncoder().encode('<|end|>')]);
  });

  it('an empty conversation is a prompt too', () => {
    expect([...bytes.buildGenerationPrompt([]).toInts()]).toEqual([259]);
  });

  it('says which role or part a family does not have', () => {
    expect(() => bytes.buildGenerationPrompt([{ role: 'narrator', content: '' }])).toThrow("no role 'narrator'");
    expect(() => bytes.buildGenerationPrompt([{ role: 'user', content: [{ type: 'image', format: 'png' }] }])).toThrow(
      'image part',
    );
    expect(() => getRenderer('role_colon', new ByteTokenizer()).declareTools([])).toThrow('no way to declare tools');
  });
});

describe('images', () => {
  const png = (width: number, height: number): Uint8Array => {
    const data = new Uint8Array(24);
    data.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
    new DataView(data.buffer).setUint32(16, width);
    new DataView(data.buffer).setUint32(20, height);
    return data;
  };
  const jpeg = (width: number, height: number): Uint8Array =>
    // Start of image, an application segment, a progressive frame header.
    Uint8Array.from([
      0xff,
      0xd8,
      0xff,
      0xe0,
      0,
      4,
      1,
      2,
      0xff,
      0xc2,
      0,
      11,
      8,
      height >> 8,
      height & 255,
      width >> 8,
      width & 255,
      3,
      0,
      0,
      0,
    ]);

  it('counts tokens by the family’s rule', () => {
    // Qwen: smart_resize of transformers 5.22; Kimi: navit_resize_image of its processor; Inkling: tml-renderers 0.2.1.
    const sizes: [number, number, qwen: number, kimi: number, inkling: number][] = [
      [224, 224, 64, 64, 36],
      [400, 300, 108, 165, 88],
      [1, 1, 64, 1, 1],
      [33, 47, 70, 4, 2],
      [640, 480, 300, 414, 204],
      [1920, 1080, 2040, 2691, 1323],
      [4096, 4096, 16384, 4225, 10609],
      [8000, 6000, 16170, 4144, 30150],
    ];
    for (const [width, height, qwen, kimi, inkling] of sizes) {
      expect([qwenImageTokens, kimiImageTokens, inklingImageTokens].map((rule) => rule(width, height))).toEqual([
        qwen,
        kimi,
        inkling,
      ]);
    }
    expect(() => qwenImageTokens(1000, 2)).toThrow(RendererError);
  });

  it('reads the size from the bytes', () => {
    expect(imageSize(png(400, 300), 'png')).toEqual({ width: 400, height: 300 });
    expect(imageSize(jpeg(640, 480), 'jpeg')).toEqual({ width: 640, height: 480 });
    expect(() => imageSize(png(1, 1), 'jpeg')).toThrow('not a jpeg');
    expect(() => imageSize(new Uint8Array(3), 'png')).toThrow('not a png');
  });

  it('stands between its markers as a chunk of its own', () => {
    const renderer = make('qwen3', 'qwen3_vl_instruct');
    const data = png(224, 224);
    const messages: Message[] = [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'See ' },
          { type: 'image', data, format: 'png' },
          { type: 'text', text: '!' },
        ],
      },
      { role: 'assistant', content: 'ok' },
    ];
    const { modelInput, weights } = renderer.buildSupervisedExample(messages);
    const [before, image, after] = modelInput.chunks;
    expect(image).toEqual({ type: 'image', data, format: 'png', expectedTokens: 64 });
    const { tokenizer } = renderer;
    const texts = [before, after].map((chunk) =>
      chunk?.type === 'encoded_text' ? tokenizer.decode(chunk.tokens) : '',
    );
    expect(texts).toEqual([
      '<|im_start|>user\nSee <|vision_start|>',
      '<|vision_end|>!<|im_end|>\n<|im_start|>assistant\nok<|im_end|>',
    ]);
    expect(weights.length).toBe(modelInput.length);
  });

  it('by location needs a size or a count', () => {
    const renderer = make('kimi_k25', 'kimi_k25');
    const ask = (part: object) =>
      renderer.buildGenerationPrompt([{ role: 'user', content: [{ type: 'image', format: 'png', ...part }] }]);
    expect(() => ask({ location: 'asset' })).toThrow('needs width and height');
    expect(ask({ location: 'asset', width: 224, height: 224 }).chunks[1]).toEqual({
      type: 'image_asset_pointer',
      location: 'asset',
      format: 'png',
      expectedTokens: 64,
    });
    expect(ask({ location: 'asset', expectedTokens: 7 }).chunks[1]).toMatchObject({ expectedTokens: 7 });
    expect(() => ask({})).toThrow('needs data or a location');
  });

  it('text-only renderers refuse them', () => {
    expect(() =>
      make('qwen3', 'qwen3').buildGenerationPrompt([{ role: 'user', content: [{ type: 'image', format: 'png' }] }]),
    ).toThrow('does not take image parts');
  });
});

describe('names', () => {
  it('knows the 44 names of the cookbook, and three of its own', () => {
    expect(RENDERER_NAMES.length).toBe(47);
    expect(RENDERER_NAMES).toEqual(
      expect.arrayContaining([
        'chat_template',
        'tinker_rx_bytes',
        'role_colon',
        'tml_v0',
        'nemotron3_ultra_medium_thinking',
      ]),
    );
  });

  it('has a renderer for each of the 44 models, the embedded two and six small ones', () => {
    const models = Object.keys(MODEL_RENDERERS);
    expect(models).toHaveLength(44 + 2 + 6);
    for (const model of models) expect(RENDERER_NAMES).toEqual(expect.arrayContaining([...renderersFor(model)]));
  });

  it('recommends', () => {
    expect(rendererFor('Qwen/Qwen3-8B')).toBe('qwen3');
    expect(rendererFor('openai/gpt-oss-20b:checkpoint')).toBe('gpt_oss_no_sysprompt');
    expect(rendererFor('thinkingmachines/Inkling-Next')).toBe('tml_v0');
    expect(rendererFor('tinker-rx/tiny')).toBe('tinker_rx_bytes');
    expect(() => rendererFor('me/mine')).toThrow('choose one by name');
    expect(() => rendererFor('constructor')).toThrow(RangeError);
  });

  it('registers and takes back', () => {
    const undo = registerRenderer('me/mine', () => bytes);
    expect(getRenderer('me/mine', new ByteTokenizer())).toBe(bytes);
    expect(registeredRenderers()).toContain('me/mine');
    expect(() => registerRenderer('me/mine', () => bytes)).toThrow('exists already');
    expect(() => registerRenderer('qwen3', () => bytes)).toThrow('exists already');
    undo();
    expect(() => getRenderer('me/mine', new ByteTokenizer())).toThrow('unknown renderer me/mine');
  });

  it('a tokenizer without the family’s tokens is named', () => {
    expect(() => getRenderer('qwen3', new ByteTokenizer())).toThrow(/tinker-rx\/tiny/);
  });
});
