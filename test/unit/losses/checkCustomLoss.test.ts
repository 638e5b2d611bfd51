import { describe, expect, it } from 'vitest';
import { ValidationError, type CustomLossInput, type CustomLossNode } from 'tinker-rx';
import { checkCustomLoss } from '../../../src/losses/checkCustomLoss.js';

const LOGPROBS: CustomLossInput = { name: 'logprobs', rank: 1 };
const placeholder = (name: string): CustomLossNode => ({ op: 'placeholder', name, target: name });
const call = (fields: Partial<CustomLossNode> = {}): CustomLossNode => ({
  op: 'call_function',
  name: 'f',
  target: 'torch.exp',
  args: [{ ref: 'logprobs' }],
  ...fields,
});
const output = (loss: unknown = { ref: 'f' }, metrics: unknown = { dict: {} }): CustomLossNode => ({
  op: 'output',
  name: 'output',
  target: 'output',
  args: [{ tuple: [loss, metrics] }],
});
const check = (inputs: readonly CustomLossInput[], nodes: readonly CustomLossNode[]) => () =>
  checkCustomLoss('mine', inputs, { nodes });
const graph = (...nodes: CustomLossNode[]) => check([LOGPROBS], [placeholder('logprobs'), ...nodes]);

describe('a custom loss graph', () => {
  it('of torch, math and operator calls passes', () => {
    for (const target of ['torch.exp', 'operator.mul', 'math.sqrt', 'getattr', 'torch.nn.functional.softplus'])
      expect(graph(call({ target }), output())).not.toThrow();
    expect(
      graph(
        call({ op: 'call_method', target: 'sum' }),
        output({ ref: 'f' }, { dict: { 'custom/kl:mean': { ref: 'f' } } }),
      ),
    ).not.toThrow();
  });

  it.each<[string, () => void, string]>([
    [
      'no logprobs first',
      check([{ name: 'weights', rank: 1 }], []),
      'the first input must be logprobs, of rank 1 or 2',
    ],
    ['scalar logprobs', check([{ name: 'logprobs', rank: 0 }], []), 'the first input must be logprobs, of rank 1 or 2'],
    [
      'too many inputs',
      check([LOGPROBS, ...Array.from({ length: 16 }, (_, index) => ({ name: `i${index}`, rank: 1 as const }))], []),
      'it takes 17 inputs, at most 16 are allowed',
    ],
    [
      'an input in capitals',
      check([LOGPROBS, { name: 'Weights', rank: 1 }], []),
      'the input "Weights" must be a lower-case name',
    ],
    [
      'another operation',
      graph({ op: 'get_attr' as never, name: 'g', target: 'x' }),
      'node g is a get_attr, which cannot be sent',
    ],
    [
      'a function from elsewhere',
      graph(call({ target: 'os.system' })),
      'node f calls os.system; only torch, math and operator may be called',
    ],
    [
      'a call that leaves the graph',
      graph(call({ op: 'call_method', target: 'item' })),
      'node f calls item(), which leaves the graph',
    ],
    ['one name twice', graph(call(), call()), 'two nodes are called f'],
    [
      'a reference ahead',
      graph(call({ args: [[{ ref: 'later' }]] })),
      'node f refers to later, which is not before it',
    ],
    [
      'a reference in named arguments',
      graph(call({ kwargs: { other: { slice: [{ ref: 'x' }, null, null] } } })),
      'node f refers to x, which is not before it',
    ],
    ['no output', graph(call()), 'the last node must be the output'],
    ['a loss that is no tensor', graph(call(), output(7)), 'the output must be (loss, metrics), the loss a tensor'],
    ['no metrics', graph(call(), output({ ref: 'f' }, null)), 'the metrics must be a dict'],
    [
      'a metric of another name',
      graph(call(), output({ ref: 'f' }, { dict: { 'kl:mean': 1 } })),
      'the metric "kl:mean" must be named custom/<name>:sum or custom/<name>:mean',
    ],
  ])('with %s is refused', (_, run, said) => {
    expect(run).toThrow(new ValidationError(`custom loss mine: ${said}`));
  });
});
