import { afterAll, beforeAll, expect, it } from 'vitest';
import { LocalTinker } from '../../src/local/index.js';
import { connect, type LocalCaller } from './localCaller.js';
import { datum, sampleBody } from './localFixture.js';

let local: LocalTinker;
let caller: LocalCaller;
beforeAll(async () => {
  local = await LocalTinker.start({ pollHoldMs: 1 });
  caller = connect(local);
});
afterAll(() => local.close());

const percentile = (sorted: readonly number[], fraction: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))]!;

it('answers heartbeats and polls within 50 ms while it trains and samples', { timeout: 60_000 }, async () => {
  const session = await caller.createSession();
  const model = await caller.createModel(session, { rank: 16 });
  const { sampling_session_id: sampler } = await caller.post('create_sampling_session', {
    session_id: session,
    sampling_session_seq_id: 0,
    base_model: local.baseModels[0],
  });
  // Enough work for a second or more: long sequences, one pass behind the other, and a sample beside them.
  const data = Array.from({ length: 16 }, () => datum(120));
  const passes: string[] = [];
  for (let seqId = 1; seqId <= 12; seqId++) {
    const response = await caller.submitPass(model, seqId, data);
    passes.push(((await response.json()) as { request_id: string }).request_id);
  }
  const body = sampleBody({
    sampling_session_id: sampler,
    seq_id: 0,
    num_samples: 16,
    sampling_params: { max_tokens: 100, stop: [] },
  });
  await caller.post('asample', body);

  const times: number[] = [];
  const timed = async (path: string, fields: object): Promise<number> => {
    const started = performance.now();
    const response = await caller.send(path, fields);
    await response.arrayBuffer();
    times.push(performance.now() - started);
    return response.status;
  };
  let busyRounds = 0;
  for (let pending = true; pending;) {
    await timed('session_heartbeat', { session_id: session });
    pending = (await timed('retrieve_future', { request_id: passes.at(-1) })) === 408;
    if (pending) busyRounds++;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  times.sort((a, b) => a - b);
  expect(busyRounds, 'the work was over too soon to show anything').toBeGreaterThan(20);
  expect(percentile(times, 0.5)).toBeLessThan(15);
  // The machine's other work may take its share now and then.
  expect(percentile(times, 0.95), `slowest ${times.slice(-5).map(Math.round).join(', ')} ms`).toBeLessThan(50);
});
