import { describe, expect, it } from 'vitest';
import { joinExtensions } from '../../src/chat/renderers/core/assemble.js';
import { getRenderer, type SupervisedExample } from '../../src/chat/renderers/index.js';
import { ModelInput } from '../../src/wire/modelInput.js';
import { conversation, recordedFamilies, type RecordedExample } from './renderersRecorded.js';

function plain({ modelInput, weights }: SupervisedExample): RecordedExample {
  const runs: [number, number][] = [];
  for (const weight of weights) {
    const last = runs.at(-1);
    if (last?.[0] === weight) last[1]++;
    else runs.push([weight, 1]);
  }
  return { tokens: [...modelInput.toInts()], weights: runs };
}

/** Oracles differ in what they join into one example; the losses are the same, so both sides are compared joined. */
function joined(examples: readonly RecordedExample[]): RecordedExample[] {
  const parsed = examples.map(({ tokens, weights }) => ({
    modelInput: ModelInput.fromInts(tokens),
    weights: Float32Array.from(weights.flatMap(([weight, count]) => Array<number>(count).fill(weight))),
  }));
  return joinExtensions(parsed).map(plain);
}

for (const { family, tokenizer } of recordedFamilies()) {
  describe(`${family.family}, tokens as recorded`, () => {
    for (const [name, entries] of Object.entries(family.renderers)) {
      const renderer = getRenderer(name, tokenizer, { currentDate: '2026-01-02' });
      for (const [caseName, { prompt, supervised }] of Object.entries(entries)) {
        const messages = () => conversation(renderer, family.cases[caseName]!);
        if (prompt) {
          it(`${name}: prompt of ${caseName} (${prompt.by.join(', ')})`, () => {
            const all = messages();
            const asked = all.at(-1)?.role === 'assistant' ? all.slice(0, -1) : all;
            const tokens = [...renderer.buildGenerationPrompt(asked).toInts()];
            if (!same(tokens, prompt.value)) expect(tokenizer.decode(tokens)).toBe(tokenizer.decode(prompt.value));
            expect(tokens).toEqual(prompt.value);
          });
        }
        if (supervised) {
          it(`${name}: examples of ${caseName} (${supervised.by.join(', ')})`, () => {
            const examples = renderer
              .buildSupervisedExamples(messages(), { trainOn: 'all_assistant_messages' })
              .map(plain);
            const text = (example: RecordedExample) => tokenizer.decode(example.tokens);
            const expected = joined(supervised.value);
            expect(examples.map(text)).toEqual(expected.map(text));
            expect(examples).toEqual(expected);
          });
        }
      }
    }
  });
}

const ENDS = { stop_sequence: 'stop', eos: 'end_of_text', malformed: 'malformed' } as const;

for (const { family, tokenizer } of recordedFamilies()) {
  describe.each(Object.entries(family.responses))('%s, responses as the cookbook reads them', (name, responses) => {
    const renderer = getRenderer(name, tokenizer);
    it.each(responses.map((response) => [tokenizer.decode(response.tokens), response] as const))(
      '%j',
      (_, response) => {
        const parsed = renderer.parse(response.tokens);
        expect(parsed.termination).toBe(ENDS[response.termination]);
        // The cookbook gives up on the parts of a truncated response; this library reads what is there.
        if (response.termination === 'malformed') return;
        expect({
          // Nor does it take a call that it could not read out of the text.
          text: response.unparsed === 0 ? parsed.text.trim() : response.text,
          thinking: parsed.thinking.trim(),
          calls: parsed.toolCalls.map((call) => [call.name, JSON.parse(call.arguments) as unknown]),
          unparsed: parsed.unparsedToolCalls.length,
        }).toEqual({
          text: response.text,
          thinking: response.thinking,
          calls: response.calls,
          unparsed: response.unparsed,
        });
      },
    );
  });
}

function same(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((value, index) => value === b[index]);
}
