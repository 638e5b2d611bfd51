import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Engine } from '../../../src/local/engine/index.js';

describe('Engine', () => {
  let engine: Engine;
  beforeAll(async () => {
    const t = performance.now();
    engine = await Engine.start();
    console.log('start', performance.now() - t);
  });
  afterAll(() => engine.close());
  it('samples', async () => {
    await engine.createSampler({ samplerId: 's', baseModel: 'tinker-rx/tiny' });
    const r = await engine.sample('s', { prompt: Int32Array.of(1, 2, 3), maxTokens: 5 });
    expect(r.sequences[0]!.tokens.length).toBeGreaterThan(0);
  });
});
