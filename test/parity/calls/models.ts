import type { Play, Stage } from '../support/stage.js';
import { BASE_MODEL, WEIGHTS_TOKEN } from '../support/stage.js';
import { PARAMS } from './data.js';
import { ModelInput } from 'tinker-rx';

const PATH = 'tinker://run-1/weights/0001';
const USER_METADATA = { purpose: 'parity' };

async function fromState(stage: Stage): Promise<void> {
  const service = stage.service();
  await service.createTrainingClientFromState(PATH);
  await service.createTrainingClientFromState(PATH, {
    baseModel: `${BASE_MODEL}:long`,
    userMetadata: USER_METADATA,
    optimizer: { type: 'dimuon' },
  });
  const trainer = await service.createTrainingClientFromStateWithOptimizer(PATH, {
    baseModel: `${BASE_MODEL}:long`,
    userMetadata: USER_METADATA,
  });
  await stage.result('optim_step', trainer.optimStep());
  await service.createTrainingClientFromState(PATH, { weightsAccessToken: WEIGHTS_TOKEN });
  await service.createTrainingClientFromStateWithOptimizer(PATH, { weightsAccessToken: WEIGHTS_TOKEN });
}

export const models: Readonly<Record<string, Play>> = {
  'create-model': async (stage) => {
    const service = stage.service();
    const trainer = await service.createLoraTrainingClient({ baseModel: BASE_MODEL });
    await stage.result('get_info', trainer.getInfo());
    await service.createLoraTrainingClient({
      baseModel: BASE_MODEL,
      rank: 8,
      seed: 7,
      trainMlp: false,
      trainAttn: true,
      trainUnembed: false,
      userMetadata: USER_METADATA,
      optimizer: { type: 'adamw' },
    });
    await service.createLoraTrainingClient({ baseModel: BASE_MODEL, optimizer: { type: 'dimuon' } });
    await service.createLoraTrainingClient({ baseModel: BASE_MODEL, optimizer: { type: 'lion', decay: 0.5 } });
  },
  'from-state': fromState,
  'from-state-one-call': fromState,
  save: async (stage) => {
    const trainer = await stage.trainer();
    const userMetadata = { step: '1' };
    await stage.result('save_state', trainer.saveState('bare'));
    const all = { ttlSeconds: 3600, overwrite: true, userMetadata };
    await stage.result('save_state all', trainer.saveState('all', all));
    await stage.result('save_weights_for_sampler', trainer.saveWeightsForSampler('bare'));
    const options = { ttlSeconds: 3600, userMetadata };
    await stage.result('save_weights_for_sampler all', trainer.saveWeightsForSampler('all', options));
    await stage.result('save_weights_external', trainer.saveWeightsExternal('bare'));
    const encrypted = { ttlSeconds: 3600, ageEncryptionRecipients: ['age1recipient'] };
    await stage.result('save_weights_external all', trainer.saveWeightsExternal('all', encrypted));
  },
  load: async (stage) => {
    const trainer = await stage.trainer();
    const token = { weightsAccessToken: WEIGHTS_TOKEN };
    await stage.result('load_state', trainer.loadState(PATH));
    await stage.result('load_state token', trainer.loadState(PATH, token));
    await stage.result('load_state_with_optimizer', trainer.loadStateWithOptimizer(PATH));
    await stage.result('load_state_with_optimizer token', trainer.loadStateWithOptimizer(PATH, token));
  },
  'sampler-from-training': async (stage) => {
    const trainer = await stage.trainer();
    const samplers = [
      ['save_weights_and_get_sampling_client', await trainer.saveWeightsAndGetSamplingClient()],
      ['create_sampling_client', await trainer.createSamplingClient('tinker://run-1/sampler_weights/0001')],
      ['save_weights_and_get_sampling_client', await trainer.saveWeightsAndGetSamplingClient()],
    ] as const;
    for (const [call, sampler] of samplers) {
      const prompt = ModelInput.fromInts([1, 2, 3]);
      await stage.result(call, sampler.sample({ prompt, numSamples: 1, samplingParams: PARAMS }));
    }
    await stage.result('optim_step', trainer.optimStep());
  },
  'copy-weights': async (stage) => {
    const rest = stage.rest();
    const token = { weightsAccessToken: WEIGHTS_TOKEN };
    await stage.result('rest', rest.copyWeights(PATH, { destinationProjectId: 'project-1' }));
    const all = { destinationProjectId: 'project-1', ttlSeconds: 3600, ...token };
    await stage.result('rest all', rest.copyWeights(PATH, all));
    await stage.result('rest environment', rest.copyWeights(PATH));
    const service = stage.service({ projectId: 'project-2' });
    await stage.result('service', service.copyWeights(PATH, { ttlSeconds: 7200, ...token }));
  },
  'create-custom-loss': async (stage) => {
    const service = stage.service();
    const ref = (name: string) => ({ ref: name });
    const graph = (dim: number) => ({
      nodes: [
        { op: 'placeholder', name: 'logprobs', target: 'logprobs' },
        { op: 'placeholder', name: 'weights', target: 'weights' },
        { op: 'call_function', name: 'mul', target: 'operator.mul', args: [ref('logprobs'), ref('weights')] },
        { op: 'call_method', name: 'sum_1', target: 'sum', args: [ref('mul')], kwargs: { dim } },
        { op: 'call_function', name: 'neg', target: 'operator.neg', args: [ref('sum_1')] },
        {
          op: 'output',
          name: 'output',
          target: 'output',
          args: [{ tuple: [ref('neg'), { dict: { 'custom/neg_ll:sum': ref('neg') } }] }],
        },
      ] as const,
    });
    const inputs = [
      { name: 'logprobs', rank: 1 },
      { name: 'weights', rank: 1 },
    ] as const;
    for (const [index, name] of ['neg_ll', 'neg_ll_again'].entries()) {
      const handle = await service.createCustomLoss({ name, inputs, graph: graph(index) });
      await stage.result(name, Promise.resolve({ lossId: handle.lossId }));
    }
  },
};
