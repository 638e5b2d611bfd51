import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LocalTinker } from '../../src/local/index.js';
import { ModelInput, TensorData } from '../../src/wire/index.js';
import { connect, type LocalCaller } from './localCaller.js';

describe('a training run over HTTP with the real engine', () => {
  let local: LocalTinker;
  let caller: LocalCaller;
  beforeAll(async () => {
    local = await LocalTinker.start();
    caller = connect(local);
  });
  afterAll(() => local.close());

  it('learns, saves for a sampler and samples what it learned', async () => {
    const session = await caller.createSession();
    const modelId = await caller.createModel(session, { rank: 8, seed: 1 });
    const text = Array.from(Buffer.from('ok: yes.'));
    const datum = {
      modelInput: ModelInput.fromInts(text.slice(0, -1)),
      lossFnInputs: {
        target_tokens: TensorData.from(text.slice(1), 'int64'),
        weights: TensorData.from(new Array<number>(text.length - 1).fill(1), 'float32'),
      },
    };
    const losses: number[] = [];
    let seqId = 1;
    for (let step = 0; step < 30; step++) {
      const pass = caller.forwardBackward(modelId, seqId++, [datum]);
      const optim = caller.future('optim_step', {
        model_id: modelId,
        seq_id: seqId++,
        adam_params: { learning_rate: 0.004 },
      });
      losses.push((await pass).metrics['loss:sum']!);
      await optim;
    }
    expect(losses.at(-1)).toBeLessThan(losses[0]! / 4);

    const saved = await caller.future('save_weights_for_sampler', {
      model_id: modelId,
      seq_id: seqId++,
      path: 'learned',
    });
    expect(saved).toMatchObject({ path: `tinker://${modelId}/sampler_weights/learned` });
    const sampler = await caller.post('create_sampling_session', {
      session_id: session,
      sampling_session_seq_id: 0,
      model_path: saved['path'],
    });
    const response = await caller.sample({
      sampling_session_id: sampler['sampling_session_id'],
      seq_id: 0,
      num_samples: 2,
      prompt: { chunks: [{ type: 'encoded_text', tokens: text.slice(0, 3) }] },
      sampling_params: { max_tokens: 5, temperature: 0 },
    });
    expect(response.sequences.map(({ tokens }) => Buffer.from(tokens).toString())).toEqual([' yes.', ' yes.']);
  });
});
