import { expect, it } from 'vitest';
import { MissingRequestError, ServiceClient, type TinkerError, type TinkerFuture } from 'tinker-rx';
import { LocalTinker, type LocalTinkerOptions } from 'tinker-rx/local';
import { FakeEngine } from './localFakeEngine.js';
import { datum } from './localFixture.js';

const STEPS = 200;
const REFUSED = 100;

/** 200 steps made at once, and how each call ended. A close that waits for a missing number never ends. */
async function pipelined(options: LocalTinkerOptions, datums: number) {
  const engine = new FakeEngine();
  const local = await LocalTinker.start({ engine, ...options });
  const service = new ServiceClient({
    baseUrl: local.url,
    apiKey: local.apiKey,
    telemetry: false,
    logLevel: 'silent',
  });
  try {
    const trainer = await service.createLoraTrainingClient({ baseModel: 'fake/model' });
    const calls: TinkerFuture<unknown>[] = [];
    for (let step = 0; step < STEPS; step++) {
      const data = Array.from({ length: datums }, () => datum());
      calls.push(trainer.forwardBackward(data, 'cross_entropy'), trainer.optimStep());
    }
    const closed = service.close();
    const outcomes = await Promise.all(
      calls.map((call) =>
        call.then(
          () => undefined,
          (error: unknown) => error as TinkerError,
        ),
      ),
    );
    await closed;
    return { outcomes, log: engine.log };
  } finally {
    await local.close();
  }
}

it('a refused send in the middle of 200 pipelined steps fails alone; the rest runs in order, and close ends', async () => {
  const fault = { type: 'status', status: 400, detail: 'refused for the test' } as const;
  const { outcomes, log } = await pipelined(
    { faults: { rules: [{ endpoint: 'forward_backward', nth: REFUSED + 1, fault }] } },
    1,
  );
  const failed = outcomes.flatMap((error, index) => (error === undefined ? [] : [[index, error.message]]));
  expect(failed).toEqual([[2 * REFUSED, 'POST /api/v1/forward_backward: 400 refused for the test']]);
  expect(log.filter((entry) => entry.startsWith('forward_backward'))).toHaveLength(STEPS - 1);
  expect(log.filter((entry) => entry.startsWith('optim_step'))).toHaveLength(STEPS);
});

it('a refused chunk in the middle of 200 pipelined steps: what cannot run fails and says why, and close ends', async () => {
  const fault = { type: 'status', status: 413, detail: 'too large for the test' } as const;
  // Three chunks a pass, the first one sent last: this refuses the second of pass 100, while the third is accepted.
  const nth = 3 * REFUSED + 1;
  const { outcomes } = await pipelined(
    { flags: { fwdbwdMaxChunkLen: 1 }, faults: { rules: [{ endpoint: 'forward_backward', nth, fault }] } },
    3,
  );
  expect(outcomes.slice(0, 2 * REFUSED)).toEqual(new Array(2 * REFUSED).fill(undefined));
  expect(outcomes[2 * REFUSED]!.message).toContain('413 too large for the test');
  const missing = 4 * REFUSED + 1;
  for (const error of outcomes.slice(2 * REFUSED + 1)) {
    expect(error).toBeInstanceOf(MissingRequestError);
    expect(error!.message).toContain(`request ${missing} (forward_backward)`);
    expect(error!.message).toContain('resume from the last save');
  }
});
