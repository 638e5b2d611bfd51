import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import {
  addLosses,
  defineLoss,
  definePairLoss,
  evaluateLoss,
  isTracedLoss,
  type Tensor,
} from '../../../src/losses/index.js';
import type { Datum } from '../../../src/wire/datum.js';
import { ModelInput } from '../../../src/wire/modelInput.js';
import { TensorData } from '../../../src/wire/tensor.js';
import { ValidationError } from '../../../src/wire/tinkerError.js';

const datum = (length: number, inputs: Datum['lossFnInputs'] = {}): Datum => ({
  modelInput: ModelInput.fromInts(Array.from({ length }, (_, i) => i + 1)),
  lossFnInputs: { target_tokens: Array.from({ length }, (_, i) => i + 2), ...inputs },
});

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(ValidationError);
    return (error as Error).message;
  }
  throw new Error('nothing was thrown');
}

describe('defineLoss', () => {
  it('records an expression as the nodes that torch.fx would write', () => {
    const loss = defineLoss(({ logprobs, weights }) => logprobs.mul(weights).sum().neg(), { name: 'nll' });
    expect(loss.inputs).toEqual([{ name: 'logprobs' }, { name: 'weights' }]);
    expect(loss.graph.nodes.map(({ op, target }) => `${op} ${target}`)).toEqual([
      'placeholder logprobs',
      'placeholder weights',
      'call_function operator.mul',
      'call_method sum',
      'call_function operator.neg',
      'output output',
    ]);
    expect(isTracedLoss(loss)).toBe(true);
    expect(JSON.parse(JSON.stringify(loss.graph))).toEqual(loss.graph);
  });

  it('evaluates and differentiates it, summed over the datums', () => {
    const loss = defineLoss(({ logprobs, weights }, ops) => ({
      loss: ops.weightedSum(logprobs.square(), weights),
      metrics: { seen: weights.sum(), 'total:sum': weights.sum() },
    }));
    const data = [datum(2, { weights: [1, 0.5] }), datum(1, { weights: [2] })];
    const { loss: value, gradients, metrics } = evaluateLoss(loss, data, [[-1, -2], [-3]]);
    expect(value).toBeCloseTo(1 + 2 + 18, 10);
    expect(gradients.map((row) => [...row])).toEqual([[-2, -2], [-12]]);
    expect(metrics).toEqual({ 'custom/seen:mean': 1.75, 'custom/total:sum': 3.5 });
  });

  it('takes inputs of its own with their ranks, and says what is missing or does not fit', () => {
    const loss = defineLoss(({ logprobs, scale }) => logprobs.sum().mul(scale), {
      name: 'scaled',
      inputs: { scale: 0 },
    });
    expect(loss.inputs[1]).toEqual({ name: 'scale', rank: 0 });
    const scalar = new TensorData({ dtype: 'float32', data: Float32Array.of(3), shape: [] });
    expect(evaluateLoss(loss, [datum(2, { scale: scalar })], [[-1, -2]]).loss).toBe(-9);
    expect(messageOf(() => evaluateLoss(loss, [datum(2)], [[-1, -2]]))).toBe(
      'data[0].lossFnInputs.scale is missing: the loss scaled takes it',
    );
    expect(messageOf(() => evaluateLoss(loss, [datum(2, { scale: [1, 2] })], [[-1, -2]]))).toContain('has rank 1');
  });

  it('reads old_logprobs where sampled data has them: under logprobs', () => {
    const loss = defineLoss(({ logprobs, old_logprobs }) => logprobs.sub(old_logprobs).exp().sum());
    const sampled = datum(2, { logprobs: [-1, -2] });
    expect(evaluateLoss(loss, [sampled], [[-1, -2]]).loss).toBe(2);
  });

  it('an input that is not used need not be in the data', () => {
    const loss = defineLoss(({ logprobs, advantages: _ }) => logprobs.sum());
    expect(loss.inputs.map(({ name }) => name)).toEqual(['logprobs']);
  });

  const here = /losses\/defineLoss\.test\.ts:\d+:\d+\)/;
  it.each<[string, (x: Tensor) => Tensor, string]>([
    ['an arithmetic operator', (x) => ((x as unknown as number) * 2) as unknown as Tensor, 'arithmetic'],
    ['a comparison', (x) => ((x as unknown as number) > 0 ? x.sum() : x.mean()), 'ops.where'],
    ['a Math function', (x) => Math.exp(x as unknown as number) as unknown as Tensor, 'Math functions'],
    ['a branch on a recorded comparison', (x) => (x.sum().gt(0) ? x.sum() : x.mean()), 'the result of gt is not used'],
    ['a negated value', (x) => (!x.lt(0) ? x.sum() : x.mean()), 'the result of lt is not used'],
    [
      'a loop over data',
      (x) => {
        let sum = x.sum();
        for (const each of x as unknown as Tensor[]) sum = sum.add(each);
        return sum;
      },
      'a loop over data',
    ],
    ['its length', (x) => x.sum().div((x as unknown as number[]).length), 'use count()'],
    ['a map', (x) => (x as unknown as Tensor[]).map((each) => each)[0]!, 'a loop over data (map)'],
    ['an index in brackets', (x) => (x as unknown as Tensor[])[0]!, 'use at(0)'],
    ['a captured array', (x) => x.mul([1, 2] as unknown as number).sum(), 'a captured array'],
    ['a captured typed array', (x) => x.mul(Float32Array.of(1) as unknown as number).sum(), 'a captured array'],
    ['a captured tensor', (x) => x.mul(TensorData.from([1.5]) as unknown as number).sum(), 'a captured tensor'],
    ['a method the graph has not', (x) => (x as unknown as { fft(): Tensor }).fft(), 'there is no fft'],
    [
      'a loop that waits for a value',
      (x) => {
        let sum = x.sum();
        while (sum.gt(0)) sum = sum.sub(1);
        return sum;
      },
      'more than 10000 operations',
    ],
    ['a value that is set', (x) => ((x as unknown as number[])[0] = 1) && x.sum(), '0 cannot be set'],
    ['a loop over its keys', (x) => Object.keys(x).reduce((sum) => sum, x.sum()), 'a loop over data'],
    ['the question what it holds', (x) => ('length' in x ? x.sum() : x.mean()), 'not known while it is recorded'],
    ['an option that is none', (x) => x.sum({ axis: 0 } as object), 'there is no option axis'],
    ['a clamp without bounds', (x) => x.clamp(0 as never).sum(), 'clamp needs { min }, { max } or both'],
    ['text', (x) => x.add(`${x as unknown as string}` as unknown as number), 'cannot be recorded'],
  ])('refuses %s, and names the line', (_, use, why) => {
    const message = messageOf(() => defineLoss(({ logprobs }) => use(logprobs), { name: 'mine' }));
    expect(message).toContain('loss mine');
    expect(message).toContain(why);
    expect(message).toMatch(here);
  });

  it('takes a value that is used for true in a bare branch, as JavaScript does for any object', () => {
    const perWeight = defineLoss(({ logprobs, weights }) => {
      const total = weights.sum();
      return total ? logprobs.sum().div(total) : logprobs.sum();
    });
    const loss = (weights: readonly number[]) =>
      evaluateLoss(perWeight, [datum(2, { weights: [...weights] })], [[-1, -2]]).loss;
    expect(loss([1, 2])).toBe(-1);
    expect(loss([0, 0])).toBe(-Infinity);
  });

  it('lets JavaScript decide by everything that is no value of the loss', () => {
    const options: { readonly scale?: number; readonly parts: readonly string[] } = { parts: ['a', 'b'] };
    const make = (perToken: boolean, later?: Tensor) =>
      defineLoss(({ logprobs, weights }, ops) => {
        let total: Tensor | undefined = later;
        for (const part of options.parts) {
          const each = part === 'a' ? logprobs.sum() : ops.weightedSum(logprobs, weights);
          total = total === undefined ? each : total.add(each);
        }
        for (let round = 0; round < 2 && !perToken; round++) total = total!.mul(2);
        const pick = (weights: boolean) => (weights ? logprobs.exp() : logprobs);
        return total!.add(pick(perToken).mean()).mul(options.scale ?? 1);
      });
    const data = [datum(2, { weights: [1, 1] })];
    expect(evaluateLoss(make(false), data, [[-1, -2]]).loss).toBe(4 * (-3 - 3) - 1.5);
    expect(evaluateLoss(make(true), data, [[0, 0]]).loss).toBe(1);
  });

  it('refuses inputs that are listed, copied or asked whether they are there', () => {
    expect(messageOf(() => defineLoss((inputs) => ({ ...inputs }).logprobs.sum()))).toContain('cannot be listed');
    const asks = () => defineLoss((inputs) => ('mask' in (inputs as object) ? inputs.mask : inputs.logprobs).sum());
    expect(messageOf(asks)).toContain('whether data has the input mask');
    expect(messageOf(asks)).toMatch(here);
  });

  it('refuses a loss and metrics that are not one number, when it is defined', () => {
    expect(messageOf(() => defineLoss(({ logprobs }) => logprobs.exp()))).toMatch(
      /defineLoss\.test\.ts:\d+:\d+\): the loss must be one number, not of shape \[3\]: reduce it with sum\(\) or mean\(\)/,
    );
    const metrics = () => defineLoss(({ logprobs }) => ({ loss: logprobs.sum(), metrics: { all: logprobs } }));
    expect(messageOf(metrics)).toContain('the metric custom/all:mean must be one number');
    // Of targets with K columns it is one.
    const rows = defineLoss(({ logprobs }) => logprobs.sum({ dim: -1 }).sum({ dim: -1 }));
    expect(rows.inputs).toHaveLength(1);
  });

  it('shows in console.log what a value is, and where it was made', () => {
    let shown = '';
    const show = (value: Tensor) => ((shown = inspect(value)), value);
    defineLoss(({ logprobs }) => show(logprobs.exp()).sum(), { name: 'shown' });
    expect(shown).toMatch(/^Tensor \{ exp of the loss shown, .*defineLoss\.test\.ts:\d+:\d+: no values while/);
  });

  it('names the very line', () => {
    const message = messageOf(() =>
      defineLoss(({ logprobs }) => {
        const total = logprobs.sum();
        return ((total as unknown as number) + 1) as unknown as Tensor; // this very line
      }),
    );
    const source = readFileSync(new URL(import.meta.url), 'utf8').split('\n');
    const line = source.findIndex((text) => text.endsWith('// this very line')) + 1;
    expect(message).toContain(`defineLoss.test.ts:${line}:`);
  });

  it('refuses a loss without logprobs, a number, a promise, a tensor of another loss, and a wrong metric', () => {
    let leaked: Tensor | undefined;
    defineLoss(({ logprobs }) => (leaked = logprobs.sum()));
    expect(messageOf(() => defineLoss(({ weights }) => weights.sum()))).toMatch(
      /defineLoss\.test\.ts:\d+:\d+\): it does not depend on the logprobs/,
    );
    expect(messageOf(() => defineLoss(() => 3 as unknown as Tensor))).toContain('got the number 3');
    expect(messageOf(() => defineLoss((async () => {}) as unknown as () => Tensor))).toContain('promise');
    expect(messageOf(() => defineLoss(({ logprobs }) => logprobs.add(leaked!).sum()))).toContain('another loss');
    expect(messageOf(() => leaked!.neg())).toContain('recorded once');
    expect(
      messageOf(() => defineLoss(({ logprobs }) => ({ loss: logprobs.sum(), metrics: { 'A b': logprobs.mean() } }))),
    ).toContain('the metric "A b"');
    expect(
      messageOf(() => defineLoss(({ logprobs }) => ({ loss: logprobs.sum(), metrics: { a: 1 as never } }))),
    ).toContain('the metric custom/a:mean');
  });
});

describe('addLosses', () => {
  it('adds values, gradients and metrics', () => {
    const a = defineLoss(({ logprobs }) => ({ loss: logprobs.sum(), metrics: { a: logprobs.mean() } }), { name: 'a' });
    const b = defineLoss(({ logprobs, weights }) => logprobs.mul(weights).sum(), { name: 'b' });
    const sum = addLosses(a, b);
    const { loss, gradients, metrics } = evaluateLoss(sum, [datum(2, { weights: [2, 3] })], [[-1, -2]]);
    expect(sum.name).toBe('a_plus_b');
    expect(loss).toBe(-3 - 2 - 6);
    expect([...gradients[0]!]).toEqual([3, 4]);
    expect(metrics).toEqual({ 'custom/a:mean': -1.5 });
  });

  it('refuses a loss of pairs and inputs that differ in rank', () => {
    const plain = defineLoss(({ logprobs, a }) => logprobs.mul(a).sum(), { inputs: { a: 1 } });
    const other = defineLoss(({ logprobs, a }) => logprobs.mul(a).sum(), { inputs: { a: 0 } });
    const pair = definePairLoss(({ chosen }) => chosen.logprobs.sum());
    expect(messageOf(() => addLosses(plain, pair))).toContain('a loss of pairs');
    const reports = (name: string) =>
      defineLoss(({ logprobs }) => ({ loss: logprobs.sum(), metrics: { [name]: logprobs.mean() } }), { name });
    expect(messageOf(() => addLosses(reports('kl'), reports('kl:mean')))).toContain(
      'kl and kl:mean both report the metric kl',
    );
    expect(messageOf(() => addLosses(plain, other))).toContain('rank 1');
  });
});

describe('definePairLoss', () => {
  const margin = definePairLoss(
    ({ chosen, rejected }, ops) => ({
      loss: ops.weightedSum(rejected.logprobs, rejected.weights).sub(ops.weightedSum(chosen.logprobs, chosen.weights)),
      metrics: { gap: chosen.logprobs.sum().sub(rejected.logprobs.sum()) },
    }),
    { name: 'margin' },
  );
  const side = (length: number) => datum(length, { weights: Array.from({ length }, () => 1) });

  it('takes chosen and rejected in turn, and averages over the pairs', () => {
    const data = [side(1), side(2), side(1), side(1)];
    const { loss, gradients, metrics } = evaluateLoss(margin, data, [[-1], [-2, -3], [-4], [-1]]);
    expect(loss).toBe((-5 + 1 + (-1 + 4)) / 2);
    expect(gradients.map((row) => [...row])).toEqual([[-0.5], [0.5, 0.5], [-0.5], [0.5]]);
    expect(metrics).toEqual({ 'custom/gap:mean': (4 - 3) / 2 });
  });

  it('refuses an odd number of datums, and names the datum that lacks an input', () => {
    expect(messageOf(() => evaluateLoss(margin, [side(1)], [[-1]]))).toContain('an odd number');
    expect(messageOf(() => evaluateLoss(margin, [side(1), datum(1)], [[-1], [-1]]))).toBe(
      'data[1].lossFnInputs.weights is missing: the loss margin takes it',
    );
  });
});
