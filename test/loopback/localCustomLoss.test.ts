import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LocalTinker } from '../../src/local/index.js';
import { Program } from '../../src/losses/graph/program.js';
import { TensorData, type CustomLossInput, type CustomLossNode } from '../../src/wire/index.js';
import { connect, type Json, type LocalCaller } from './localCaller.js';
import { closeAfterEach, datum, start } from './localFixture.js';

interface Recorded {
  readonly name: string;
  readonly inputs: readonly CustomLossInput[];
  readonly graph: { readonly nodes: readonly CustomLossNode[] };
  readonly values: Readonly<Record<string, number[] | number[][]>>;
  readonly loss: number;
  readonly gradient: readonly number[];
  readonly metrics: Readonly<Record<string, number>>;
}

// Recorded from PyTorch by test/parity/record_custom_loss.py.
const { cases } = JSON.parse(readFileSync(new URL('../parity/recorded/custom-loss.json', import.meta.url), 'utf8')) as {
  cases: readonly Recorded[];
};

const toInput = (value: number[] | number[][]) => ({
  shape: Array.isArray(value[0]) ? [value.length, value[0].length] : [value.length],
  data: Float64Array.from(value.flat()),
});
const node = (op: CustomLossNode['op'], name: string, target: string, args: unknown[] = [], kwargs: Json = {}) => ({
  op,
  name,
  target,
  args,
  kwargs,
});
const ref = (name: string) => ({ ref: name });
const INPUTS: CustomLossInput[] = [{ name: 'logprobs', rank: 1 }];
const wrap = (...middle: CustomLossNode[]): CustomLossNode[] => [
  node('placeholder', 'logprobs', 'logprobs'),
  ...middle,
  node('output', 'output', 'output', [{ tuple: [ref(middle.at(-1)?.name ?? 'logprobs'), { dict: {} }] }]),
];

describe('the interpreter of traced losses', () => {
  it.each(cases)('gives the loss, gradient and metrics that PyTorch gives: $name', (recorded) => {
    const program = new Program(recorded.inputs, recorded.graph.nodes);
    const result = program.run(recorded.inputs.map(({ name }) => toInput(recorded.values[name]!)));
    expect(result.loss).toBeCloseTo(recorded.loss, 10);
    expect(result.gradient).toHaveLength(recorded.gradient.length);
    recorded.gradient.forEach((expected, index) => expect(result.gradient[index]).toBeCloseTo(expected, 5));
    expect(Object.keys(result.metrics)).toEqual(Object.keys(recorded.metrics));
    for (const [key, value] of Object.entries(recorded.metrics)) expect(result.metrics[key]).toBeCloseTo(value, 6);
  });

  it.each([
    [
      'an operation it does not have',
      wrap(node('call_function', 'a', 'torch.svd', [ref('logprobs')])),
      'cannot run torch.svd',
    ],
    ['another module', wrap(node('call_function', 'a', 'os.system', ['x'])), 'cannot run os.system'],
    ['a method with a path', wrap(node('call_method', 'a', 'constructor.sum', [ref('logprobs')])), 'cannot run'],
    [
      'a name of every object',
      wrap(node('call_function', 'a', 'torch.constructor', [])),
      'cannot run torch.constructor',
    ],
    ['a node that is not there yet', wrap(node('call_function', 'a', 'torch.exp', [ref('b')])), 'uses b'],
    ['two nodes of one name', wrap(node('call_method', 'logprobs', 'sum', [ref('logprobs')])), 'two nodes'],
  ])('refuses %s', (_, nodes, message) => {
    expect(() => new Program(INPUTS, nodes)).toThrow(message);
  });

  it('refuses a loss that is no scalar and a metric of another name', () => {
    const run = (nodes: CustomLossNode[]) => () => new Program(INPUTS, nodes).run([toInput([-1, -2])]);
    expect(run(wrap(node('call_function', 'a', 'torch.exp', [ref('logprobs')])))).toThrow('must be one number');
    const total = node('call_method', 'a', 'sum', [ref('logprobs')]);
    const output = node('output', 'output', 'output', [{ tuple: [ref('a'), { dict: { 'loss:sum': ref('a') } }] }]);
    expect(run([...wrap(total).slice(0, 2), output])).toThrow('a metric must be called');
  });
});

describe('arguments of operations', () => {
  const results = (...middle: CustomLossNode[]) => {
    const total = node('call_method', 'total', 'sum', [ref(middle.at(-1)!.name)]);
    return new Program(INPUTS, wrap(...middle, total)).run([toInput([-3, -1])]).loss;
  };
  const x = ref('logprobs');

  it.each([
    ['div', 'rounding_mode', node('call_function', 'a', 'torch.div', [x, 2], { rounding_mode: 'floor' })],
    ['softplus', 'beta', node('call_function', 'a', 'torch.nn.functional.softplus', [x], { beta: 2 })],
    ['softplus', 'argument 2', node('call_function', 'a', 'torch.nn.functional.softplus', [x, 2])],
    ['sum', 'axis', node('call_method', 'a', 'sum', [x], { axis: 0 })],
    ['round', 'decimals', node('call_function', 'a', 'torch.round', [x], { decimals: 1 })],
    ['relu', 'inplace', node('call_function', 'a', 'torch.nn.functional.relu', [x], { inplace: true })],
    ['sum', 'dtype', node('call_method', 'a', 'sum', [x], { dtype: { dtype: 'torch.int64' } })],
  ])('refuses what %s does not take: %s', (operation, argument, called) => {
    expect(() => results(called)).toThrow(`${operation} does not take ${argument}`);
  });

  it('takes those that change no value', () => {
    const harmless = { _stacklevel: 3, dtype: { dtype: 'torch.float32' }, inplace: false, out: null };
    expect(results(node('call_function', 'a', 'torch.nn.functional.relu', [x], harmless))).toBe(0);
    expect(results(node('call_method', 'a', 'type_as', [x, x]))).toBe(-4);
  });

  // Values by PyTorch's documentation: std(dim, unbiased, keepdim), std(unbiased).
  it.each([
    [[0, false], 1],
    [[0, true], Math.SQRT2],
    [[false], 1],
    [[], Math.SQRT2],
  ])('reads std(%j) as PyTorch does', (given, expected) => {
    expect(results(node('call_method', 'a', 'std', [x, ...given]))).toBeCloseTo(expected, 12);
  });

  it('replaces infinities in nan_to_num, by the largest float32 unless told otherwise', () => {
    const log = node('call_function', 'l', 'torch.log', [x]);
    const infinite = node('call_function', 'i', 'torch.div', [1, 0]);
    const made = (kwargs: Json) =>
      results(infinite, node('call_function', 'a', 'torch.nan_to_num', [ref('i')], kwargs));
    expect(made({})).toBeCloseTo(3.4028234663852886e38, -30);
    expect(made({ posinf: 7 })).toBe(7);
    expect(results(log, node('call_function', 'a', 'torch.nan_to_num', [ref('l'), 2]))).toBe(4);
  });

  it('rounds toward zero where a whole number type is asked for', () => {
    const half = node('call_function', 'h', 'torch.div', [x, 2]);
    expect(results(half, node('call_method', 'a', 'to', [ref('h'), { dtype: 'torch.int64' }]))).toBe(-1);
    expect(results(half, node('call_method', 'a', 'to', [ref('h')], { dtype: { dtype: 'torch.bool' } }))).toBe(2);
  });
});

describe('create_custom_loss', () => {
  closeAfterEach();
  const request = (session: string, { name, inputs, graph }: Recorded, seq = 0) => ({
    session_id: session,
    custom_loss_seq_id: seq,
    name,
    inputs,
    graph,
  });

  it('is not there while its flag is off', async () => {
    const { caller } = await start();
    expect((await caller.send('create_custom_loss', request(await caller.createSession(), cases[0]!))).status).toBe(
      404,
    );
  });

  it('takes a loss once, refuses another under its number, and says what it cannot run', async () => {
    const { caller } = await start({ flags: { customLossServerSide: true } });
    const session = await caller.createSession();
    const first = await caller.post('create_custom_loss', request(session, cases[0]!));
    expect(await caller.post('create_custom_loss', request(session, cases[0]!))).toEqual(first);
    expect(await caller.result(first['request_id'] as string)).toMatchObject({ loss_id: `${session}:loss:0` });
    expect((await caller.send('create_custom_loss', request(session, cases[1]!))).status).toBe(409);
    const bad = { ...cases[0]!, inputs: INPUTS, graph: { nodes: wrap(node('call_function', 'a', 'torch.svd')) } };
    expect(await caller.future('create_custom_loss', request(session, bad, 1))).toEqual({
      error: 'cannot run torch.svd in a custom loss',
      category: 'user',
    });
  });

  it('runs a loss in its own session only, and says which input is missing', async () => {
    const { caller } = await start({ flags: { customLossServerSide: true } });
    const session = await caller.createSession();
    const { loss_id: lossId } = await caller.future('create_custom_loss', request(session, cases[0]!));
    const config = { lossFn: 'custom', lossFnConfig: { loss_id: lossId as string } };
    const stranger = await caller.createModel(await caller.createSession());
    await expect(caller.forwardBackward(stranger, 1, [datum()], config)).rejects.toThrow('this session created');
    const model = await caller.createModel(session);
    const { target_tokens: targets } = datum().lossFnInputs;
    const without = { ...datum(), lossFnInputs: { target_tokens: targets! } };
    await expect(caller.forwardBackward(model, 1, [without], config)).rejects.toThrow('loss_fn_inputs.weights');
    expect((await caller.forwardBackward(model, 2, [datum()], config)).metrics['loss:sum']).toBeCloseTo(0.06, 5);
  });
});

describe('with the real engine', () => {
  let local: LocalTinker;
  let caller: LocalCaller;
  beforeAll(async () => {
    local = await LocalTinker.start({ flags: { customLossServerSide: true } });
    caller = connect(local);
  });
  afterAll(() => local.close());

  it('trains with an uploaded negative log likelihood exactly as with cross_entropy, in one request', async () => {
    const session = await caller.createSession();
    const { loss_id: lossId } = await caller.future('create_custom_loss', {
      session_id: session,
      custom_loss_seq_id: 0,
      name: 'neg_ll',
      inputs: cases[0]!.inputs,
      graph: cases[0]!.graph,
    });
    const data = [
      datum(6),
      { ...datum(4), lossFnInputs: { ...datum(4).lossFnInputs, weights: TensorData.from([0, 1, 0.5, 1], 'float32') } },
    ];
    const learn = async (seq: number, options: object) => {
      const model = await caller.createModel(session, { rank: 4, seed: 3 }, seq);
      const losses: number[] = [];
      for (let step = 0; step < 4; step++) {
        const { metrics } = await caller.forwardBackward(model, 2 * step + 1, data, options);
        losses.push(metrics['loss:sum']!);
        await caller.future('optim_step', {
          model_id: model,
          seq_id: 2 * step + 2,
          adam_params: { learning_rate: 0.01 },
        });
      }
      return losses;
    };
    const plain = await learn(0, {});
    const custom = await learn(1, { lossFn: 'custom', lossFnConfig: { loss_id: lossId as string } });
    expect(plain.at(-1)).toBeLessThan(plain[0]!);
    custom.forEach((loss, step) => expect(loss).toBeCloseTo(plain[step]!, 3));
  });
});
