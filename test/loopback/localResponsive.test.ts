import { afterAll, beforeAll, expect, it } from 'vitest';
import { LocalTinker } from '../../src/local/index.js';
import { connect, type LocalCaller } from './localCaller.js';
import { datum } from './localFixture.js';

let local: LocalTinker;
let caller: LocalCaller;
beforeAll(async () => {
  local = await LocalTinker.start({ pollHoldMs: 1 });
  caller = connect(local);
});
afterAll(() => local.close());

it('answers heartbeats and polls while a pass runs', async () => {
  const session = await caller.createSession();
  const model = await caller.createModel(session, { rank: 16 });
  // One pass of a second or more: had it run in the server's thread, a single round could be answered before its end.
  const response = await caller.submitPass(
    model,
    1,
    Array.from({ length: 200 }, () => datum(120)),
  );
  const { request_id: pass } = (await response.json()) as { request_id: string };
  let rounds = 0;
  for (;;) {
    expect((await caller.send('session_heartbeat', { session_id: session })).status).toBe(200);
    if ((await caller.send('retrieve_future', { request_id: pass })).status !== 408) break;
    rounds++;
  }
  expect(rounds).toBeGreaterThan(5);
});
