import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastValueFrom, toArray } from 'rxjs';
import { afterAll, describe, expect, it } from 'vitest';
import { fromPreferences, toPreference } from '../../src/sources/index.js';

const user = (content: string) => ({ role: 'user', content });
const assistant = (content: string) => ({ role: 'assistant', content });
const system = { role: 'system', content: 'be kind' };
const expected = { chosen: [user('Why?'), assistant('Because.')], rejected: [user('Why?'), assistant('Go away.')] };

describe('toPreference', () => {
  it.each<[string, unknown]>([
    ['prompt, chosen, rejected as texts', { prompt: 'Why?', chosen: 'Because.', rejected: 'Go away.' }],
    ['question in place of prompt', { question: 'Why?', chosen: 'Because.', rejected: 'Go away.' }],
    [
      'answers as messages',
      { prompt: [user('Why?')], chosen: [assistant('Because.')], rejected: [assistant('Go away.')] },
    ],
    [
      'answers that repeat the prompt, as UltraFeedback binarized has them',
      // The columns of HuggingFaceH4/ultrafeedback_binarized: `messages` is the chosen conversation once more.
      { prompt: 'Why?', prompt_id: 'x', messages: expected.chosen, score_chosen: 8, score_rejected: 2, ...expected },
    ],
    ['answers that repeat the prompt, beside no messages', { prompt: 'Why?', messages: null, ...expected }],
    [
      "OpenAI's preferred and non-preferred output",
      {
        input: { messages: [user('Why?')], tools: [], parallel_tool_calls: true },
        preferred_output: [assistant('Because.')],
        non_preferred_output: [assistant('Go away.')],
      },
    ],
    ['input in place of prompt', { input: 'Why?', chosen: 'Because.', rejected: 'Go away.' }],
    ['whole conversations without a prompt', expected],
    [
      'a history in messages',
      { messages: [user('Why?')], chosen: assistant('Because.'), rejected: assistant('Go away.') },
    ],
    [
      'a history in ShareGPT form',
      {
        conversations: [{ from: 'human', value: 'Why?' }],
        chosen: { from: 'gpt', value: 'Because.' },
        rejected: { from: 'gpt', value: 'Go away.' },
      },
    ],
    [
      "Anthropic's transcripts",
      { chosen: '\n\nHuman: Why?\n\nAssistant: Because.', rejected: '\n\nHuman: Why?\n\nAssistant: Go away.' },
    ],
    ['a transcript as prompt', { prompt: '\n\nHuman: Why?\n\nAssistant:', chosen: 'Because.', rejected: 'Go away.' }],
    [
      "UltraFeedback's scores",
      {
        instruction: 'Why?',
        completions: [
          { response: 'Hm.', overall_score: 5 },
          { response: 'Because.', overall_score: '8.5' },
          { response: 'Go away.', overall_score: 1 },
        ],
      },
    ],
  ])('reads %s', (_, row) => expect(toPreference(row)).toEqual(expected));

  it('keeps a system text, once', () => {
    const spoken = { chosen: [system, ...expected.chosen], rejected: [system, ...expected.rejected] };
    expect(toPreference({ system: 'be kind', prompt: 'Why?', chosen: 'Because.', rejected: 'Go away.' })).toEqual(
      spoken,
    );
    expect(
      toPreference({ prompt: [system, user('Why?')], chosen: expected.chosen, rejected: spoken.rejected }),
    ).toEqual(spoken);
  });

  it("joins instruction and input, as a chat file's Alpaca rows are", () => {
    const { chosen } = toPreference({ instruction: 'Translate.', input: 'Ja', chosen: 'Yes', rejected: 'No' });
    expect(chosen[0]).toEqual(user('Translate.\n\nJa'));
  });

  it('puts a system text before answers that carry their prompt', () => {
    const spoken = { chosen: [system, ...expected.chosen], rejected: [system, ...expected.rejected] };
    expect(toPreference({ system: 'be kind', ...expected })).toEqual(spoken);
    expect(toPreference({ system: 'be kind', ...spoken })).toEqual(spoken);
    expect(toPreference({ prompt: [system], ...expected })).toEqual(spoken);
    const transcript = (answer: string) => `\n\nHuman: Why?\n\nAssistant: ${answer}`;
    const transcripts = { chosen: transcript('Because.'), rejected: transcript('Go away.') };
    expect(toPreference({ system: 'be kind', ...transcripts })).toEqual(spoken);
  });

  it('takes answers that part from each other before the last turn as they are', () => {
    const early = { chosen: [user('a'), assistant('b'), user('c'), assistant('d')], rejected: [user('a'), assistant('x'), user('y'), assistant('z')] }; // prettier-ignore
    expect(toPreference({ prompt: [user('a'), assistant('b'), user('c')], ...early })).toEqual(early);
  });

  it('keeps tools, calls and reasoning, and reads what it gave again without a change', () => {
    const tool = { name: 'weather', description: 'says it', parameters: { type: 'object', properties: {} } };
    const call = { id: '1', type: 'function', function: { name: 'weather', arguments: '{}' } };
    const preference = toPreference({
      prompt: 'Why?',
      tools: [{ type: 'function', function: tool }],
      chosen: [{ role: 'assistant', content: null, tool_calls: [call] }, { role: 'tool', tool_call_id: '1', content: 'rain' }, assistant('Rain.')], // prettier-ignore
      rejected: '<think>Hm.</think>No.',
    });
    expect(preference.tools).toEqual([tool]);
    expect(preference.chosen[1]).toMatchObject({ toolCalls: [{ name: 'weather', arguments: '{}', id: '1' }] });
    expect(preference.rejected[1]!.content).toEqual([
      { type: 'thinking', thinking: 'Hm.' },
      { type: 'text', text: 'No.' },
    ]);
    expect(toPreference(preference)).toEqual(preference);
  });

  it('reads transcripts of several turns', () => {
    const text = (last: string) => `\n\nHuman: a\n\nAssistant: b\n\nc\n\nHuman: d\n\nAssistant: ${last}`;
    expect(toPreference({ chosen: text('e'), rejected: text('f') }).chosen).toEqual([
      user('a'),
      assistant('b\n\nc'),
      user('d'),
      assistant('e'),
    ]);
  });

  it.each<[unknown, string]>([
    ['text', 'expected an object'],
    [{ prompt: 'a', chosen: 'b' }, 'expected chosen and rejected'],
    [{ prompt: 'a', chosen: 'b', rejected: null }, 'expected chosen and rejected'],
    [{ input: { messages: [] }, preferred_output: [] }, 'expected chosen and rejected'],
    [{ chosen: 'b', rejected: 'c' }, 'chosen has no prompt'],
    [{ chosen: 1, rejected: 'c' }, 'chosen must be a transcript'],
    [{ prompt: 'a', chosen: 1, rejected: 'c' }, 'chosen must be a text'],
    [{ prompt: 'a', chosen: [user('b')], rejected: 'c' }, 'chosen must end with a message of the assistant'],
    [{ instruction: 'a', completions: [{ response: 'b', overall_score: 1 }] }, 'two answers with different scores'],
    [{ instruction: 'a', completions: [{ response: 'b' }] }, 'completions[0].overall_score must be a number'],
    [{ completions: [] }, 'need an instruction'],
  ])('refuses %j', (row, message) => expect(() => toPreference(row)).toThrow(message));
});

describe('fromPreferences', () => {
  const folder = mkdtempSync(join(tmpdir(), 'preferences-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('reads a file, and names the row that is none', async () => {
    const file = join(folder, 'pairs.jsonl');
    writeFileSync(file, `${JSON.stringify(expected)}\n{"prompt":"x"}\n${JSON.stringify(expected)}\n`);
    const good = fromPreferences(file, { onBadRow: 'skip' }).pipe(toArray());
    expect(await lastValueFrom(good)).toEqual([expected, expected]);
    await expect(lastValueFrom(fromPreferences(file))).rejects.toThrow('expected chosen and rejected');
    expect(() => fromPreferences('pairs.txt')).toThrow(RangeError);
  });
});
