import { lastValueFrom, map, of, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ByteTokenizer, getRenderer } from '../../src/chat/index.js';
import { toDecisions } from '../../src/operators/data/toDecisions.js';
import { fromJsonl } from '../../src/sources/index.js';
import type { TensorData } from '../../src/wire/tensor.js';
import { keepsContract, throwing } from './contract.js';
import { marbles } from './marbles.js';

const renderer = getRenderer('tinker_rx_bytes', new ByteTokenizer());
const labels = ['yes', 'no'];
const row = { text: 'Is it?', label: 'no' };
const codes = (text: string) => [...text].map((letter) => letter.charCodeAt(0));
const made = async (...rows: readonly unknown[]) =>
  lastValueFrom(of(...rows).pipe(toDecisions({ renderer, labels }), toArray()));
const tensor = (inputs: Readonly<Record<string, unknown>>, name: string) => (inputs[name] as TensorData).toArray();

describe('toDecisions', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map(() => row),
        toDecisions({ renderer, labels }),
        map(({ modelInput }) => modelInput.length),
      ),
    readsForThree: 3,
    throwing: () => (source) =>
      source.pipe(
        map(() => row),
        toDecisions({ renderer, labels, label: throwing }),
      ),
  });

  it(
    'emits a datum for each row at once',
    marbles((m) => {
      const source = m.cold('  -a---b-|', { a: row, b: { ...row, label: 'yes' } });
      const subs = '           ^------!';
      const expected = '       -a---b-|';
      const last = source.pipe(
        toDecisions({ renderer, labels }),
        map(({ lossFnInputs }) => (tensor(lossFnInputs, 'target_tokens') as number[]).at(-1)),
      );
      m.expect(last).toBeObservable(expected, { a: codes('n')[0], b: codes('y')[0] });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it('puts all weight on the first token of the label', async () => {
    const [datum] = await made(row);
    const prompt = [...renderer.buildGenerationPrompt([{ role: 'user', content: 'Is it?' }]).toInts()];
    expect([...datum!.modelInput.toInts()]).toStrictEqual(prompt);
    expect(tensor(datum!.lossFnInputs, 'target_tokens')).toStrictEqual([...prompt.slice(1), ...codes('n')]);
    expect(tensor(datum!.lossFnInputs, 'weights')).toStrictEqual([...prompt.slice(1).map(() => 0), 1]);
  });

  it('spreads the weight over the tokens of soft labels', async () => {
    const [datum] = await made({ text: 'Is it?', label: { yes: 3, no: 1 } });
    const targets = (datum!.lossFnInputs['target_tokens'] as TensorData).toDense().toArray() as number[][];
    const weights = (datum!.lossFnInputs['weights'] as TensorData).toDense().toArray() as number[][];
    expect(targets).toHaveLength(datum!.modelInput.length);
    expect(targets.at(-1)).toStrictEqual(codes('yn'));
    expect(weights.at(-1)).toStrictEqual([0.75, 0.25]);
    expect(
      weights
        .slice(0, -1)
        .flat()
        .every((weight) => weight === 0),
    ).toBe(true);
  });

  it('reads labels by the usual names, and answers of conversations', async () => {
    const messages = [
      { role: 'user', content: 'Is it?' },
      { role: 'assistant', content: 'no' },
    ];
    const data = await made(row, { question: 'Is it?', answer: 'no' }, { messages });
    expect(data.slice(1)).toStrictEqual([data[0], data[0]]);
  });

  it('refuses what it cannot train, with file and line of a row from a file', async () => {
    await expect(made({ text: 'a', label: 'maybe' })).rejects.toThrow("'maybe' is not one of the labels 'yes', 'no'");
    await expect(made({ text: 'a' })).rejects.toThrow('the row has no label');
    await expect(made({ text: 'a', label: { yes: 0 } })).rejects.toThrow('sum to 0');
    await expect(made({ text: 'a', label: { yes: -1 } })).rejects.toThrow("the share of 'yes' must be a number >= 0");
    const file = new URL('../../examples/data/facts.jsonl', import.meta.url).pathname;
    await expect(lastValueFrom(fromJsonl(file).pipe(toDecisions({ renderer, labels })))).rejects.toThrow(
      /facts.jsonl:1/,
    );
  });
});
