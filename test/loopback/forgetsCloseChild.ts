/**
 * Run by forgetsClose.test.ts in a process of its own: does some work and never closes a client. Arguments: what to do, the
 * service's URL, its key. Says on stdout what it got.
 */
import { isLeft, ModelInput, RestClient, SamplingClient, ServiceClient } from '../../src/index.js';

const [, , what, baseUrl = '', apiKey = ''] = process.argv;
const options = { baseUrl, apiKey, telemetry: true };
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const prompt = ModelInput.fromInts([104, 105]);
const asked = { prompt, samplingParams: { maxTokens: 2 } };

const PROGRAMS: Record<string, () => Promise<void>> = {
  'trains and samples': async () => {
    const service = new ServiceClient(options);
    const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 2 });
    await trainer.optimStep();
    const sampler = await trainer.saveWeightsAndGetSamplingClient();
    const { sequences } = await sampler.sample(asked);
    say(`sampled ${sequences.length}`);
  },
  'does not wait for what it asked': async () => {
    const service = new ServiceClient(options);
    const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 2 });
    for (let step = 1; step <= 3; step++) trainer.optimStep().subscribe(() => say(`step ${step}`));
  },
  'lists checkpoints': async () => {
    const { checkpoints } = await new RestClient(options).listUserCheckpoints();
    say(`listed ${checkpoints.length}`);
  },
  'samples from a handle': async () => {
    const service = new ServiceClient(options);
    const handle = (await service.createSamplingClient({ baseModel: 'tinker-rx/tiny' })).getSamplerHandle();
    const { sequences } = await SamplingClient.fromSamplerHandle(handle, { apiKey }).sample(asked);
    say(`sampled ${sequences.length}`);
  },
  'has a failure that nobody reads': async () => {
    const service = new ServiceClient(options);
    const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 2 });
    void trainer.saveState('a', { ttlSeconds: 1 });
    say('asked');
  },
  'has one and calls process.exit': async () => {
    await PROGRAMS['has a failure that nobody reads']!();
    process.exit();
  },
  'has a service that does not answer': async () => {
    const service = new ServiceClient({ ...options, baseUrl: 'http://127.0.0.1:9', logLevel: 'silent' });
    const outcome = await service.getServerCapabilities({ timeoutMs: 1500 }).either();
    say(isLeft(outcome) ? outcome.left.name : 'answered');
  },
};
await PROGRAMS[what!]!();
