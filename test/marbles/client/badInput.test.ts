import type { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import {
  ModelInput,
  RestClient,
  ServiceClient,
  TensorData,
  ValidationError,
  type Datum,
  type SamplingClient,
  type TrainingClient,
} from 'tinker-rx';
import { datum, prompt, stage } from './stage.js';

const image = { type: 'image_asset_pointer', location: 'x', format: 'png', expectedTokens: 1 } as const;
const inputs = (lossFnInputs: unknown): Datum => ({ ...datum(3), lossFnInputs: lossFnInputs as Datum['lossFnInputs'] });
const pass =
  (data: unknown, lossFn: unknown = 'cross_entropy', config?: unknown) =>
  (model: TrainingClient) =>
    model.forwardBackward(
      data as Datum[],
      lossFn as 'ppo',
      config === undefined ? {} : { lossFnConfig: config as Record<string, number> },
    );
const adam = (params: unknown) => (model: TrainingClient) => model.optimStep(params as object);

describe('bad input to training is refused by name, sends nothing and loses no turn', () => {
  it.each<[string, (model: TrainingClient) => Observable<unknown>, RegExp]>([
    ['no data', pass([]), /^data is empty/],
    ['data that is no list', pass(undefined), /^data must be/],
    ['a datum that is none', pass([undefined]), /^data\[0\]/],
    ['an unknown loss', pass([datum()], 'hinge'), /^unknown loss "hinge"/],
    ['a loss configuration with NaN', pass([datum()], 'ppo', { clip_low_threshold: NaN }), /lossFnConfig/],
    [
      'an input that is no ModelInput',
      pass([{ ...datum(), modelInput: [1, 2] }]),
      /^data\[0\]\.modelInput must be a ModelInput/,
    ],
    [
      'an input without chunks',
      pass([{ ...datum(), modelInput: ModelInput.empty() }]),
      /^data\[0\]\.modelInput is empty/,
    ],
    [
      'an input without tokens',
      pass([{ ...datum(), modelInput: ModelInput.fromInts([]) }]),
      /^data\[0\]\.modelInput is empty/,
    ],
    [
      'an image pointer, which protobuf cannot carry',
      pass([{ ...datum(1), modelInput: new ModelInput([image]) }]),
      /^data\[0\]\.modelInput: .*image_asset_pointer/,
    ],
    ['no loss inputs', pass([inputs(undefined)]), /^data\[0\]\.lossFnInputs/],
    [
      'ragged rows',
      pass([inputs({ target_tokens: [[1, 2], [3]] })]),
      /^data\[0\]\.lossFnInputs\.target_tokens: .*ragged/,
    ],
    ['numbers and rows mixed', pass([inputs({ target_tokens: [1, [2], 3] })]), /ragged or mixed/],
    [
      'too few targets',
      pass([inputs({ target_tokens: [1, 2] })]),
      /^data\[0\]\.lossFnInputs\.target_tokens has 2 rows, but the input has 3 positions/,
    ],
    [
      'too many weights',
      pass([inputs({ target_tokens: [1, 2, 3], weights: [1, 1, 1, 1] })]),
      /weights has 4 rows, target_tokens has 3/,
    ],
    ['a fraction for a target', pass([inputs({ target_tokens: [1, 2.5, 3] })]), /target_tokens.*integers/],
    ['a negative target', pass([inputs({ target_tokens: [1, -1, 3] })]), /target_tokens holds .*-1/],
    ['a target of 2³¹', pass([inputs({ target_tokens: [1, 2 ** 31, 3] })]), /target_tokens holds .*2147483648/],
    [
      'a sparse negative target',
      pass([
        inputs({
          target_tokens: [
            [-5, 0, 0, 0],
            [0, 0, 0, 0],
            [0, 0, 0, 0],
          ],
        }),
      ]),
      /target_tokens holds .*-5/,
    ],
    ['only one kind of span', pass([{ ...datum(3), modelInputSpans: [] }]), /provenance comes as a pair/],
    [
      'spans that do not cover',
      pass([
        {
          ...datum(3),
          modelInputSpans: [{ type: 'prompt', sequenceId: 's', length: 2 }],
          lossFnInputSpans: [{ type: 'prompt', sequenceId: 's', length: 3 }],
        },
      ]),
      /modelInputSpans cover 2 positions/,
    ],
    ['a learning rate that is NaN', adam({ learningRate: NaN }), /learningRate: expected a finite number ≥ 0/],
    ['a learning rate below zero', adam({ learningRate: -1 }), /learningRate/],
    ['a learning rate of text', adam({ learningRate: '1e-4' }), /learningRate/],
    ['an eps of zero', adam({ eps: 0 }), /eps: expected a finite number > 0/],
    ['a beta of one', adam({ beta1: 1 }), /beta1: expected a number in \[0, 1\)/],
    ['an unknown optimizer setting', adam({ lr: 1 }), /lr: unknown key/],
    ['no optimizer settings at all', adam(null), /parameters/],
    ['dimuon without a learning rate', adam({ type: 'dimuon' }), /optimizerParams/],
    ['a checkpoint without a name', (model) => model.saveState(''), /name/],
    ['a TTL under an hour', (model) => model.saveState('a', { ttlSeconds: 60 }), /ttlSeconds: expected a TTL/],
    ['metadata that is no text', (model) => model.saveState('a', { userMetadata: { a: 1 as never } }), /userMetadata/],
    [
      'too many age recipients',
      (model) => model.saveWeightsExternal('a', { ageEncryptionRecipients: Array<string>(11).fill('age1') }),
      /at most 10/,
    ],
    ['a path that is none', (model) => model.loadState('weights/a'), /not a checkpoint path/],
    ['a path that is no text', (model) => model.loadState(undefined as never), /not a checkpoint path/],
    ['a sampler path that is none', (model) => model.createSamplingClient('a/b'), /must start with tinker:\/\//],
  ])('%s', (_, call, message) => {
    const on = stage();
    const model = on.trainer();
    const sent = on.fake.requests.length;
    const error = on.clock.reject(call(model)) as Error;
    expect(error).toBeInstanceOf(ValidationError);
    expect(error.message).toMatch(message);
    expect(on.fake.requests).toHaveLength(sent);
    on.clock.resolve(model.saveState('after'));
    expect(on.fake.to('save_weights').map(({ seqId }) => seqId)).toEqual([1]);

    expect(on.eventsOf('request-failed')).toHaveLength(1);
  });
});

describe('bad input to sampling is refused by name and sends nothing', () => {
  const sample = (options: object) => (sampler: SamplingClient) => sampler.sample({ prompt: prompt(), ...options });
  it.each<[string, (sampler: SamplingClient) => Observable<unknown>, RegExp]>([
    ['an empty prompt', sample({ prompt: ModelInput.fromInts([]) }), /the prompt is empty/],
    ['a prompt without chunks', sample({ prompt: ModelInput.empty() }), /the prompt is empty/],
    ['a prompt that is a list', sample({ prompt: [1, 2] }), /prompt must be a ModelInput/],
    ['no samples', sample({ numSamples: 0 }), /numSamples: expected an integer ≥ 1/],
    ['no tokens', sample({ samplingParams: { maxTokens: 0 } }), /maxTokens/],
    ['a temperature below zero', sample({ samplingParams: { temperature: -1 } }), /temperature/],
    ['a temperature of NaN', sample({ samplingParams: { temperature: NaN } }), /temperature/],
    ['top-p above one', sample({ samplingParams: { topP: 1.5 } }), /topP: expected a number in \(0, 1\]/],
    ['top-k of zero', sample({ samplingParams: { topK: 0 } }), /topK/],
    ['a stop of mixed kinds', sample({ samplingParams: { stop: ['a', 1] } }), /stop/],
    ['an unknown setting', sample({ samplingParams: { top_k: 1 } }), /top_k: unknown key/],
    ['an unknown option', sample({ prompts: [] }), /prompts: unknown key/],
    ['lastN without logprobs', sample({ promptLogprobsLastN: 1 }), /needs includePromptLogprobs/],
    ['lastN as long as the prompt', (sampler) => sampler.computeLogprobs(prompt(3), { lastN: 3 }), /from 1 to 2/],
    ['lastN of zero', (sampler) => sampler.computeLogprobs(prompt(3), { lastN: 0 }), /promptLogprobsLastN/],
    ['targets with too few rows', sample({ targetPromptLogprobs: [[1]] }), /must have 2 rows/],
    ['targets that are flat', sample({ targetPromptLogprobs: TensorData.from([1, 2]) }), /must be int64 and \[/],
  ])('%s', (_, call, message) => {
    const on = stage();
    const sampler = on.sampler();
    const error = on.clock.reject(call(sampler)) as Error;
    expect(error).toBeInstanceOf(ValidationError);
    expect(error.message).toMatch(message);
    on.clock.resolve(sampler.sample({ prompt: prompt() }));
    expect(on.fake.to('asample').map(({ seqId }) => seqId)).toEqual([0]);
  });
});

describe('bad input to the service is refused by name and opens no session', () => {
  it.each<[string, (service: ServiceClient) => Observable<unknown>, RegExp]>([
    ['no base model', (service) => service.createLoraTrainingClient({ baseModel: '' }), /baseModel/],
    ['a rank of zero', (service) => service.createLoraTrainingClient({ baseModel: 'a', rank: 0 }), /rank/],
    [
      'nothing to train',
      (service) =>
        service.createLoraTrainingClient({ baseModel: 'a', trainMlp: false, trainAttn: false, trainUnembed: false }),
      /at least one/,
    ],
    [
      'a state path that is none',
      (service) => service.createTrainingClientFromState('tinker://a'),
      /not a checkpoint path/,
    ],
    ['neither model nor path', (service) => service.createSamplingClient({}), /baseModel or a modelPath/],
    [
      'a model path that is none',
      (service) => service.createSamplingClient({ modelPath: '/tmp' }),
      /must start with tinker:\/\//,
    ],
    ['a copy of what is no checkpoint', (service) => service.copyWeights('tinker://x'), /./],
  ])('%s', (_, call, message) => {
    const on = stage();
    const error = on.clock.reject(call(on.service)) as Error;
    expect(error).toBeInstanceOf(ValidationError);
    expect(error.message).toMatch(message);
    expect(on.fake.requests).toEqual([]);
    on.sampler();
  });

  it.each([
    ['a key with the wrong prefix', { apiKey: 'sk-secret' }, /must start with 'tml-'/],
    ['a key with a line break', { apiKey: 'tml-secret\n' }, /API key/],
    ['a base URL that is none', { apiKey: 'tml-a', baseUrl: 'tinker' }, /not a URL/],
    ['a base URL of another kind', { apiKey: 'tml-a', baseUrl: 'ftp://x' }, /http/],
  ])('%s', (_, options, message) => {
    for (const make of [() => new ServiceClient(options), () => new RestClient(options)]) {
      expect(make).toThrow(ValidationError);
      expect(make).toThrow(message);
      expect(make).not.toThrow(/secret/);
    }
  });
});
