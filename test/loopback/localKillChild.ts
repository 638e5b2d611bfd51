/**
 * Run by localKill.test.ts in a process of its own, to be killed: saves checkpoints in a loop and says on stdout what
 * was acknowledged, `saved <path> <step>` a line. Arguments: the data folder.
 */
import { LocalTinker } from '../../src/local/localTinker.js';
import { connect } from './localCaller.js';
import { FakeEngine } from './localFakeEngine.js';

// About 0.6 MB a checkpoint, so that the time is spent writing.
const engine = new FakeEngine(50_000);
const local = await LocalTinker.start({ engine, data: process.argv[2]! });
const caller = connect(local);
const model = await caller.createModel(await caller.createSession());
let seqId = 1;
const run = (path: string, fields: object) => caller.future(path, { model_id: model, seq_id: seqId++, ...fields });

for (let round = 1; ; round++) {
  await run('optim_step', { adam_params: {} });
  const saves = [
    await run('save_weights', { path: 'latest', overwrite: true }),
    await run('save_weights', { path: `step-${round}` }),
    await run('save_weights_for_sampler', { path: `step-${round}` }),
  ];
  for (const saved of saves) process.stdout.write(`saved ${String(saved['path'])} ${round}\n`);
  if (round > 1) {
    await caller.fetch(`training_runs/${model}/checkpoints/weights/step-${round - 1}`, { method: 'DELETE' });
    process.stdout.write(`deleted tinker://${model}/weights/step-${round - 1}\n`);
  }
}
