import { describe, expect, it } from 'vitest';
import { EngineMemoryError } from '../../../src/local/engine/errors.js';
import { Heap } from '../../../src/local/engine/numeric/heap.js';
import { createCore, SHAPE, someTokens, textDatum } from './engineModel.js';

const HUGE = 2 ** 29;

describe('memory of the engine', () => {
  it('is not used up by an allocation that failed: the next small one still works', () => {
    const heap = new Heap();
    expect(() => heap.alloc(HUGE)).toThrow(EngineMemoryError);
    expect(() => heap.alloc(HUGE)).toThrow('the engine is out of memory: it has 1 MiB and needs 2049 MiB');
    const block = heap.alloc(1000);
    heap.floats[block + 999] = 7;
    expect(heap.floats[block + 999]).toBe(7);
    expect(heap.bytes).toBeLessThan(8 * 2 ** 20);
  });

  it('is needed for one pass at a time, however many models are trained at once', async () => {
    const core = createCore();
    const lora = { rank: 64 };
    const datum = [textDatum(someTokens(64, 1))];
    const loss = { name: 'cross_entropy', config: {} };
    core.createModel('first', SHAPE.name, lora);
    await core.forwardBackward('first', datum, loss, false);
    const afterOne = core.heap.bytes;
    const ids = Array.from({ length: 24 }, (_, index) => `model-${index}`);
    for (const id of ids) core.createModel(id, SHAPE.name, lora);
    const passes = ids.map((id) => core.forwardBackward(id, datum, loss, false));
    // A pass that fails does not keep the others from running.
    const wrong = core.forwardBackward('nobody', datum, loss, false);
    passes.push(core.forwardBackward('first', datum, loss, false));
    await expect(wrong).rejects.toThrow('there is no model nobody');
    expect(await Promise.all(passes)).toHaveLength(25);
    expect(core.heap.bytes).toBe(afterOne);
  });

  it('a sample finishes while one long datum is still being trained on', async () => {
    const core = createCore({ ...SHAPE, context: 2048 });
    core.createModel('m', SHAPE.name, { rank: 32 });
    core.createSampler('s', { baseModel: SHAPE.name });
    const order: string[] = [];
    const long = [textDatum(someTokens(2048, 3))];
    const pass = core
      .forwardBackward('m', long, { name: 'cross_entropy', config: {} }, false)
      .then(() => order.push('pass'));
    const sample = core.sample('s', { prompt: someTokens(4, 5), maxTokens: 3 }).result.then(() => order.push('sample'));
    await Promise.all([pass, sample]);
    expect(order).toEqual(['sample', 'pass']);
  });

  it('samples in the middle of a pass change none of its numbers', async () => {
    const data = [textDatum(someTokens(512, 3))];
    const run = async (beside: boolean) => {
      const core = createCore({ ...SHAPE, context: 2048 });
      core.createModel('m', SHAPE.name, { rank: 8 });
      core.createSampler('s', { baseModel: SHAPE.name });
      const pass = core.forwardBackward('m', data, { name: 'cross_entropy', config: {} }, false);
      // Long enough for the memory to grow while the pass is under way.
      if (beside) await core.sample('s', { prompt: someTokens(1500, 5), numSamples: 8, maxTokens: 3 }).result;
      const { outputs } = await pass;
      core.optimStep('m', { learningRate: 1e-3 });
      return { logprobs: outputs[0]!['logprobs']!.data, weights: core.exportState('m', true) };
    };
    expect(await run(true)).toEqual(await run(false));
  });
});
