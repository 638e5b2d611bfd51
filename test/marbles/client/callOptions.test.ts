import { NEVER } from 'rxjs';
import { describe, expect, it } from 'vitest';
import {
  AdminClient,
  APITimeoutError,
  CancelledError,
  RestClient,
  SamplingClient,
  ServiceClient,
  TrainingClient,
  type CallOptions,
  type TinkerFuture,
} from 'tinker-rx';
import { datum, prompt, stage, times, trainingSends } from './stage.js';

const PATH = 'tinker://run/weights/a';
const GRAPH = {
  format: 1,
  nodes: [
    { op: 'placeholder', name: 'logprobs', target: 'logprobs' },
    { op: 'output', name: 'output', target: 'output', args: [{ tuple: [{ ref: 'logprobs' }, { dict: {} }] }] },
  ],
} as const;
const INPUTS = [{ name: 'logprobs', rank: 1 }] as const;

type Call<C> = (client: C, options: CallOptions) => TinkerFuture<unknown>;
/** Every method that asks the service for something, with the options where a caller writes them. */
const SERVICE: Record<string, Call<ServiceClient>> = {
  getServerCapabilities: (service, options) => service.getServerCapabilities(options),
  createLoraTrainingClient: (service, options) => service.createLoraTrainingClient({ baseModel: 'any', ...options }),
  createTrainingClientFromState: (service, options) => service.createTrainingClientFromState(PATH, options),
  createTrainingClientFromStateWithOptimizer: (service, options) =>
    service.createTrainingClientFromStateWithOptimizer(PATH, options),
  createSamplingClient: (service, options) => service.createSamplingClient({ baseModel: 'any', ...options }),
  createCustomLoss: (service, options) =>
    service.createCustomLoss({ name: 'mine', inputs: INPUTS, graph: GRAPH, ...options }),
  copyWeights: (service, options) => service.copyWeights(PATH, options),
};
const TRAINING: Record<string, Call<TrainingClient>> = {
  forward: (model, options) => model.forward([datum()], 'cross_entropy', options),
  forwardBackward: (model, options) => model.forwardBackward([datum()], 'cross_entropy', options),
  forwardBackwardCustom: (model, options) =>
    model.forwardBackwardCustom([datum()], () => ({ loss: 0, gradients: [] }), options),
  optimStep: (model, options) => model.optimStep({}, options),
  saveState: (model, options) => model.saveState('a', options),
  saveWeightsForSampler: (model, options) => model.saveWeightsForSampler('a', options),
  saveWeightsExternal: (model, options) => model.saveWeightsExternal('a', options),
  saveWeightsAndGetSamplingClient: (model, options) => model.saveWeightsAndGetSamplingClient(options),
  loadState: (model, options) => model.loadState(PATH, options),

  loadStateWithOptimizer: (model, options) => model.loadStateWithOptimizer(PATH, options),
  getInfo: (model, options) => model.getInfo(options),
  getTokenizer: (model, options) => model.getTokenizer(options),
  getRenderer: (model, options) => model.getRenderer(undefined, options),
  createSamplingClient: (model, options) => model.createSamplingClient(PATH, options),
};
const SAMPLING: Record<string, Call<SamplingClient>> = {
  sample: (sampler, options) => sampler.sample({ prompt: prompt(), ...options }),
  reply: (sampler, options) => sampler.reply('Hello?', options),
  computeLogprobs: (sampler, options) => sampler.computeLogprobs(prompt(), options),
  getBaseModel: (sampler, options) => sampler.getBaseModel(options),
  getTokenizer: (sampler, options) => sampler.getTokenizer(options),
  getRenderer: (sampler, options) => sampler.getRenderer(undefined, options),
};
const REST: Record<string, Call<RestClient>> = {
  getTrainingRun: (rest, options) => rest.getTrainingRun('run', options),
  getTrainingRunByTinkerPath: (rest, options) => rest.getTrainingRunByTinkerPath(PATH, options),
  listTrainingRuns: (rest, options) => rest.listTrainingRuns(options),
  listCheckpoints: (rest, options) => rest.listCheckpoints('run', options),
  listUserCheckpoints: (rest, options) => rest.listUserCheckpoints(options),
  searchCheckpoints: (rest, options) => rest.searchCheckpoints(options),
  getWeightsInfoByTinkerPath: (rest, options) => rest.getWeightsInfoByTinkerPath(PATH, options),
  getExternalWeightsUrls: (rest, options) => rest.getExternalWeightsUrls('tinker://run/external_weights/a', options),
  externalWeightsUploadStart: (rest, options) =>
    rest.externalWeightsUploadStart({ baseModel: 'any', loraConfig: { rank: 8 }, ...options }),
  externalWeightsUploadFinish: (rest, options) => rest.externalWeightsUploadFinish('upload', options),
  deleteCheckpoint: (rest, options) => rest.deleteCheckpoint('run', 'weights/a', options),
  deleteCheckpointFromTinkerPath: (rest, options) => rest.deleteCheckpointFromTinkerPath(PATH, options),
  publishCheckpointFromTinkerPath: (rest, options) => rest.publishCheckpointFromTinkerPath(PATH, options),
  unpublishCheckpointFromTinkerPath: (rest, options) => rest.unpublishCheckpointFromTinkerPath(PATH, options),
  setCheckpointTtlFromTinkerPath: (rest, options) => rest.setCheckpointTtlFromTinkerPath(PATH, 3600, options),
  copyWeights: (rest, options) => rest.copyWeights(PATH, { destinationProjectId: 'p', ...options }),
  getSession: (rest, options) => rest.getSession('s', options),
  listSessions: (rest, options) => rest.listSessions(options),
  searchSessions: (rest, options) => rest.searchSessions(options),
  assignSessionProject: (rest, options) => rest.assignSessionProject('s', 'p', options),
  exportSessionTrace: (rest, options) => rest.exportSessionTrace('s', options),
  getSampler: (rest, options) => rest.getSampler('s', options),
  whoami: (rest, options) => rest.whoami(options),
};
const ADMIN: Record<string, Call<AdminClient>> = {
  getAuditLog: (admin, options) => admin.getAuditLog(options),
  getBillingUsage: (admin, options) =>
    admin.getBillingUsage({ startingOn: '2026-01-01', endingBefore: '2026-02-01', ...options }),
  getCurrentCheckpointStorageUsage: (admin, options) => admin.getCurrentCheckpointStorageUsage(options),
  getApiKey: (admin, options) => admin.getApiKey(options),
  deleteApiKey: (admin, options) => admin.deleteApiKey(options),
};

/** Methods that ask the service for nothing, or that end the client. */
const NO_CALLS = new Set([
  'constructor',
  'close',
  'destroy',
  'pending',
  'getSamplerHandle',
  'reply$',
  'loading',
  'weightsInfo',
]);
const methodsOf = (client: { readonly prototype: object }): string[] =>
  Object.entries(Object.getOwnPropertyDescriptors(client.prototype))
    .filter(([name, { value }]) => typeof value === 'function' && !NO_CALLS.has(name))
    .map(([name]) => name);

/** A call on a client whose service, from now on, answers nothing. */
type Made = (options: CallOptions) => { readonly on: ReturnType<typeof stage>; readonly future: TinkerFuture<unknown> };
function silentStage() {
  let silent = false;
  const on = stage({ script: new Proxy({}, { get: () => () => (silent ? NEVER : undefined) }) }, { projectId: 'p' });
  return { on, silence: () => (silent = true) };
}
const make =
  <C>(call: Call<C>, client: (on: ReturnType<typeof stage>) => C): Made =>
  (options) => {
    const { on, silence } = silentStage();
    const made = client(on);
    silence();
    return { on, future: call(made, options) };
  };
const CALLS: [string, Made][] = [
  ...Object.entries(SERVICE).map(([name, call]): [string, Made] => [
    `ServiceClient.${name}`,
    make(call, ({ service }) => service),
  ]),
  ...Object.entries(TRAINING).map(([name, call]): [string, Made] => [
    `TrainingClient.${name}`,
    make(call, ({ trainer }) => trainer()),
  ]),
  ...Object.entries(SAMPLING).map(([name, call]): [string, Made] => [
    `SamplingClient.${name}`,
    make(call, ({ sampler }) => sampler()),
  ]),
  ...Object.entries(REST).map(([name, call]): [string, Made] => [
    `RestClient.${name}`,
    make(call, ({ service }) => service.rest),
  ]),
  ...Object.entries(ADMIN).map(([name, call]): [string, Made] => [
    `AdminClient.${name}`,
    make(call, ({ fake }) => new AdminClient(fake.clientOptions)),
  ]),
];

describe('every call', () => {
  it('is in the list below', () => {
    expect(Object.keys(SERVICE)).toEqual(methodsOf(ServiceClient));
    expect(Object.keys(TRAINING)).toEqual(methodsOf(TrainingClient));
    expect(Object.keys(SAMPLING)).toEqual(methodsOf(SamplingClient));
    expect(Object.keys(REST)).toEqual(methodsOf(RestClient));
    expect(Object.keys(ADMIN)).toEqual(methodsOf(AdminClient));
  });

  it.each(CALLS)('ends after its timeoutMs: %s', (_, call) => {
    const { on, future } = call({ timeoutMs: 100_000 });
    const startedMs = on.clock.now();
    const error = on.clock.reject(future);
    expect(error).toBeInstanceOf(APITimeoutError);
    expect(error).toMatchObject({ code: 'timeout', retryable: false });
    expect((error as Error).message).toContain('100000 ms');
    expect(on.clock.now() - startedMs).toBe(100_000);
    expect([...on.service.pending().calls]).toEqual([]);
  });

  it.each(CALLS)('is cancelled by its signal: %s', (_, call) => {
    const controller = new AbortController();
    const { on, future } = call({ signal: controller.signal });
    on.clock.advanceBy(5000);
    const reason = new Error('changed my mind');
    controller.abort(reason);
    const error = on.clock.reject(future);
    expect(error).toBeInstanceOf(CancelledError);
    expect(error).toMatchObject({ code: 'cancelled', cause: reason });
    expect([...on.service.pending().calls]).toEqual([]);
  });

  it.each(CALLS)('sends nothing when its signal has aborted already: %s', (_, call) => {
    const { on, future } = call({ signal: AbortSignal.abort() });
    const sent = on.fake.requests.length;
    expect(on.clock.reject(future)).toBeInstanceOf(CancelledError);
    on.clock.advanceBy(5000);
    expect(on.fake.requests).toHaveLength(sent);
  });
});

describe('the signal and the timeout of a call', () => {
  it('leave nothing behind when they end a call that waited for work it shares: no more retries', () => {
    const { on, silence } = silentStage();
    silence();
    const first = on.service.getServerCapabilities({ timeoutMs: 100_000 });
    const second = on.service.createSamplingClient({ baseModel: 'any', timeoutMs: 150_000 });
    on.clock.reject(first);
    expect(on.fake.requests.filter(({ state }) => state === 'open')).toHaveLength(1);
    on.clock.reject(second);
    const sent = on.fake.requests.length;
    on.clock.advanceBy(400_000);
    expect(on.fake.requests).toHaveLength(sent);
    expect(on.fake.requests.filter(({ state }) => state === 'open')).toEqual([]);
  });

  it('leave a call alone that is done', () => {
    const on = stage({ workMs: 1000 });
    const controller = new AbortController();
    const model = on.trainer();
    const step = model.optimStep({}, { signal: controller.signal, timeoutMs: 2000 });
    on.clock.resolve(step);
    controller.abort();
    on.clock.advanceBy(10_000);
    expect(on.clock.resolve(step)).toEqual({ metrics: {} });
    expect(on.eventsOf('request-failed')).toEqual([]);
  });

  it('are not sent, and do not make a request another one', () => {
    const on = stage();
    const sampler = on.sampler();
    on.clock.resolve(sampler.sample({ prompt: prompt() }));
    on.clock.resolve(sampler.sample({ prompt: prompt(), timeoutMs: 1e9, signal: new AbortController().signal }));
    on.clock.resolve(on.trainer().saveState('a', { timeoutMs: 1e9, ttlSeconds: 3600 }));
    const [first, second] = on.fake.to('asample').map(({ json: { seq_id: _, ...rest } }) => rest);
    expect(second).toEqual(first);
    expect(on.fake.to('save_weights')[0]!.json).toMatchObject({ ttl_seconds: 3600 });
  });

  it('count from the call, so waiting for a turn is part of the time', () => {
    const on = stage({ workMs: 0, latencyMs: ({ path }) => (path === 'optim_step' ? 3000 : 0) });
    const model = on.trainer();
    const first = model.optimStep();
    const second = model.optimStep({}, { timeoutMs: 1000 });
    expect(on.clock.reject(second)).toBeInstanceOf(APITimeoutError);
    expect(on.clock.now()).toBe(1000);
    on.clock.resolve(first);
    on.clock.resolve(model.optimStep());
    // The one that gave up took no number.
    expect(trainingSends(on.fake)).toEqual(['optim_step#1@0', 'optim_step#2@3000']);
  });

  it('cancel a sample on the server, and say so of training work that runs on', () => {
    const on = stage({
      workMs: ({ path }) => (path === 'asample' || path === 'optim_step' ? 60_000 : 0),
      dynamicConfig: { sampleCancelEnabled: true },
    });
    const controller = new AbortController();
    const sample = on.sampler().sample({ prompt: prompt(), signal: controller.signal });
    const step = on.trainer().optimStep({}, { timeoutMs: 2000 });
    on.clock.advanceBy(1000);
    controller.abort();
    on.clock.advanceBy(1000);
    expect(on.clock.reject(sample)).toMatchObject({ requestId: 'session-1:sample:0:0' });
    expect(on.clock.reject(step)).toMatchObject({ requestId: 'session-1:train:0:1' });
    expect(times(on.fake.to('cancel_future'))).toEqual([1000]);
    expect(on.eventsOf('request-abandoned').map(({ requestType, cancelled }) => [requestType, cancelled])).toEqual([
      ['Sample', true],
      ['OptimStep', false],
    ]);
  });

  it('may be shared by thousands of calls without a warning of Node’s', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on('warning', note);
    const on = stage({ workMs: 1000 });
    const controller = new AbortController();
    const sampler = on.sampler();
    const samples = Array.from({ length: 1500 }, () => sampler.sample({ prompt: prompt(), signal: controller.signal }));
    await new Promise((resolve) => setTimeout(resolve, 20));
    process.off('warning', note);
    expect(warnings).toEqual([]);
    controller.abort();
    for (const sample of samples) expect(on.clock.reject(sample)).toBeInstanceOf(CancelledError);
  });

  it.each([0, -1, NaN, '5' as never])('are refused when the timeout is none: %s', (timeoutMs) => {
    const on = stage();
    const step = on.trainer().optimStep({}, { timeoutMs });
    expect(on.clock.reject(step)).toMatchObject({
      code: 'invalid_input',
      message: `timeoutMs must be a number > 0, got ${timeoutMs}`,
    });
    expect(on.fake.to('optim_step')).toEqual([]);
  });

  it('are refused when the signal is none', () => {
    const on = stage();
    const step = on.trainer().optimStep({}, { signal: {} as AbortSignal });
    expect(on.clock.reject(step)).toMatchObject({ code: 'invalid_input', message: 'signal must be an AbortSignal' });
  });
});
