import { afterEach, expect, it } from 'vitest';
import { ModelInput, ServiceClient, type Datum } from 'tinker-rx';
import { decodeForwardBackwardRequest } from '../../src/wire/proto/forwardBackwardRequest.js';
import { FakeService, reply, type Answer, type Hit } from './support/fakeService.js';
import { hurry } from './support/hurry.js';

const STEPS = 200;
let fake: FakeService;
let service: ServiceClient;
afterEach(async () => {
  await service.destroy();
  await fake.close();
});

/** A generator that gives the same numbers every time: mulberry32. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

it.each([0, 0.2])(
  '200 pipelined steps arrive in order, each once, with %f of the requests failing',
  async (faultRate) => {
    const chance = seeded(7);
    const applied: { seqId: number; kind: string }[] = [];
    const accept =
      (kind: string, seqIdOf: (hit: Hit) => number): Answer =>
      (response, hit, request) => {
        const roll = chance();
        if (roll < faultRate / 4) return request.socket.resetAndDestroy();
        if (roll < faultRate / 2)
          return reply({ detail: 'slow down' }, 429, { 'retry-after': '0.5' })(response, hit, request);
        const seqId = seqIdOf(hit);
        // The same number again is the same request: its answer was lost on the way.
        if (applied.every((one) => one.seqId !== seqId)) applied.push({ seqId, kind });
        if (roll < faultRate * 0.75) return reply({ detail: 'oops' }, 503)(response, hit, request);
        if (roll < faultRate) return request.socket.destroy();
        reply({ request_id: `${kind}-${seqId}` })(response, hit, request);
      };
    fake = await FakeService.start({
      forward_backward: accept('forward_backward', (hit) => decodeForwardBackwardRequest(hit.body).seqId),
      optim_step: accept('optim_step', (hit) => hit.json['seq_id'] as number),
      retrieve_future: (response, hit, request) => {
        const id = String(hit.json['request_id']);
        if (id === 'create') return reply({ model_id: 'model' })(response, hit, request);
        if (chance() < faultRate) return reply({ detail: 'oops' }, 503)(response, hit, request);
        reply(
          id.startsWith('optim')
            ? { metrics: {} }
            : { loss_fn_outputs: [], metrics: { 'id:sum': Number(id.split('-')[1]) } },
        )(response, hit, request);
      },
    });
    service = new ServiceClient({
      baseUrl: fake.url,
      apiKey: 'tml-loopback',
      telemetry: false,
      logLevel: 'silent',
      scheduler: hurry(200),
    });
    const trainer = await service.createLoraTrainingClient({ baseModel: 'm' });
    const datum: Datum = { modelInput: ModelInput.fromInts([1]), lossFnInputs: { target_tokens: [2], weights: [1] } };
    const results = Array.from(
      { length: STEPS },
      () => [trainer.forwardBackward([datum], 'cross_entropy'), trainer.optimStep()] as const,
    );
    for (const [index, [pass, step]] of results.entries()) {
      expect((await pass).metrics['id:sum']).toBe(2 * index + 1);
      await step;
    }
    expect(applied.map(({ seqId }) => seqId)).toStrictEqual(Array.from({ length: 2 * STEPS }, (_, index) => index + 1));
    expect(applied.map(({ kind }) => kind)).toStrictEqual(
      Array.from({ length: 2 * STEPS }, (_, index) => (index % 2 === 0 ? 'forward_backward' : 'optim_step')),
    );
  },
  120_000,
);
