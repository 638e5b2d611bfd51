import { afterEach, expect, it } from 'vitest';
import { ModelInput, SamplingClient, ServiceClient } from 'tinker-rx';
import { FakeService, reply } from './support/fakeService.js';

let fake: FakeService;
let service: ServiceClient;
afterEach(async () => {
  await service.close();
  await fake.close();
});

it('clients made from a handle share connections, and the last to close leaves none open', async () => {
  let promises = 0;
  fake = await FakeService.start({
    asample: (...seen) => reply({ request_id: `r${promises++}` })(...seen),
    retrieve_future: reply({ sequences: [{ stop_reason: 'stop', tokens: [7] }] }),
  });
  service = new ServiceClient({ baseUrl: fake.url, apiKey: 'tml-handle', telemetry: false, logLevel: 'silent' });
  const handle = (await service.createSamplingClient({ baseModel: 'm' })).getSamplerHandle();
  await service.close();
  process.env['TINKER_API_KEY'] = 'tml-other-process';
  try {
    const clones = [SamplingClient.fromSamplerHandle(handle), SamplingClient.fromSamplerHandle(handle)];
    for (const clone of clones) {
      const { sequences } = await clone.sample({ prompt: ModelInput.fromInts([1]), samplingParams: { maxTokens: 1 } });
      expect(Array.from(sequences[0]!.tokens)).toStrictEqual([7]);
    }
    expect(new Set(fake.hitsOf('asample').map(({ headers }) => headers['x-api-key']))).toStrictEqual(
      new Set(['tml-other-process']),
    );
    expect(new Set(fake.hitsOf('asample').map(({ json }) => json['seq_id'])).size).toBe(2);
    await clones[0]!.close();
    expect(fake.sockets.size).toBeGreaterThan(0);
    await clones[1]!.close();
    await expect.poll(() => fake.sockets.size).toBe(0);
    await expect(clones[1]!.getBaseModel()).rejects.toMatchObject({ code: 'closed' });
  } finally {
    delete process.env['TINKER_API_KEY'];
  }
});
