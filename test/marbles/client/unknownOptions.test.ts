import { describe, expect, it } from 'vitest';
import { AdminClient, RestClient, ServiceClient, type TinkerFuture } from 'tinker-rx';
import { json } from 'tinker-rx/testing';
import { datum, prompt, stage, type Stage } from './stage.js';

/** As a program without types calls it. */
type Untyped = Record<string, (...values: unknown[]) => TinkerFuture<unknown>>;
const untyped = (client: unknown): Untyped => client as Untyped;
const PATH = 'tinker://run/weights/a';

describe('an option that is misspelt was dropped in silence', () => {
  it.each<[string, (on: Stage) => TinkerFuture<unknown>, string]>([
    [
      'createLoraTrainingClient',
      ({ service }) => untyped(service)['createLoraTrainingClient']!({ baseModel: 'm', ranks: 8 }),
      'ranks',
    ],
    [
      'createTrainingClientFromState',
      ({ service }) => untyped(service)['createTrainingClientFromState']!(PATH, { base: 'm' }),
      'base',
    ],
    [
      'createSamplingClient',
      ({ service }) => untyped(service)['createSamplingClient']!({ baseModel: 'm', retries: 3 }),
      'retries',
    ],
    [
      'createCustomLoss',
      ({ service }) => untyped(service)['createCustomLoss']!({ name: 'l', inputs: [], graph: { nodes: [] }, fn: 1 }),
      'fn',
    ],
    ['getServerCapabilities', ({ service }) => untyped(service)['getServerCapabilities']!({ timeout: 1 }), 'timeout'],
    ['copyWeights', ({ service }) => untyped(service)['copyWeights']!(PATH, { ttl: 3600 }), 'ttl'],
    [
      'forward',
      (on) => untyped(on.trainer())['forward']!([datum()], 'ppo', { clip_low_threshold: 0.8 }),
      'clip_low_threshold',
    ],
    [
      'forwardBackward',
      (on) => untyped(on.trainer())['forwardBackward']!([datum()], 'ppo', { lossConfig: {} }),
      'lossConfig',
    ],
    ['optimStep', (on) => untyped(on.trainer())['optimStep']!({}, { timeout: 1 }), 'timeout'],
    ['saveState', (on) => untyped(on.trainer())['saveState']!('a', { ttl: 3600 }), 'ttl'],
    [
      'saveWeightsAndGetSamplingClient',
      (on) => untyped(on.trainer())['saveWeightsAndGetSamplingClient']!({ name: 'a' }),
      'name',
    ],
    ['loadState', (on) => untyped(on.trainer())['loadState']!(PATH, { token: 'x' }), 'token'],
    ['sample', (on) => untyped(on.sampler())['sample']!({ prompt: prompt(), maxTokens: 3 }), 'maxTokens'],
    [
      'sample (params)',
      (on) => untyped(on.sampler())['sample']!({ prompt: prompt(), samplingParams: { max_tokens: 3 } }),
      'max_tokens',
    ],
    ['computeLogprobs', (on) => untyped(on.sampler())['computeLogprobs']!(prompt(), { last: 3 }), 'last'],
    ['listTrainingRuns', ({ service }) => untyped(service.rest)['listTrainingRuns']!({ limits: 5 }), 'limits'],
    ['searchSessions', ({ service }) => untyped(service.rest)['searchSessions']!({ name: 'x' }), 'name'],
    ['getAuditLog', ({ fake }) => untyped(new AdminClient(fake.clientOptions))['getAuditLog']!({ date: 'x' }), 'date'],
  ])('%s', (_, call, key) => {
    const on = stage();
    const error = on.clock.reject(call(on));
    expect(error).toMatchObject({ name: 'ValidationError', code: 'invalid_input' });
    expect((error as Error).message).toMatch(new RegExp(`unknown key ${key}\\b|${key}: unknown key`));
    if (_ !== 'getAuditLog') expect(on.eventsOf('request-failed').at(-1)?.error).toBe(error);
  });

  it.each([ServiceClient, RestClient, AdminClient])('new %o', (Client) => {
    const make = () => new Client({ apiKey: 'tml-x', baseURL: 'http://elsewhere.test' } as never);
    expect(make).toThrow(expect.objectContaining({ code: 'invalid_input' }) as Error);
    expect(make).toThrow(/^options: unknown key baseURL; expected apiKey, auth, baseUrl, /);
  });
});

describe('a call without what it needs', () => {
  it.each<[string, (on: Stage) => () => TinkerFuture<unknown>, RegExp]>([
    [
      'createLoraTrainingClient()',
      ({ service }) =>
        () =>
          untyped(service)['createLoraTrainingClient']!(),
      /baseModel is missing/,
    ],
    [
      'createLoraTrainingClient(null)',
      ({ service }) =>
        () =>
          untyped(service)['createLoraTrainingClient']!(null),
      /options must be an object/,
    ],
    [
      'createSamplingClient()',
      ({ service }) =>
        () =>
          untyped(service)['createSamplingClient']!(),
      /needs a baseModel or a modelPath/,
    ],
    [
      'createCustomLoss()',
      ({ service }) =>
        () =>
          untyped(service)['createCustomLoss']!(),
      /a custom loss needs a name/,
    ],
    [
      'createTrainingClientFromState()',
      ({ service }) =>
        () =>
          untyped(service)['createTrainingClientFromState']!(),
      /not a checkpoint path/,
    ],
    [
      'sample()',
      (on) => {
        const sampler = on.sampler();
        return () => untyped(sampler)['sample']!();
      },
      /a sample needs an object of options with a prompt/,
    ],
    [
      'saveState(a, null)',
      (on) => {
        const model = on.trainer();
        return () => untyped(model)['saveState']!('a', null);
      },
      /options must be an object/,
    ],
    [
      'getBillingUsage()',
      ({ fake }) => {
        const admin = new AdminClient(fake.clientOptions);
        return () => untyped(admin)['getBillingUsage']!();
      },
      /startingOn must be a time/,
    ],
  ])('%s threw synchronously, or failed without a code', (_, prepared, said) => {
    const on = stage();
    const call = prepared(on);
    const error = on.clock.reject(call());
    expect(error).toMatchObject({ code: 'invalid_input' });
    expect((error as Error).message).toMatch(said);
  });
});

it('a failure that nobody foresaw has a code and an event, and keeps what was thrown', () => {
  const on = stage({ script: { get_server_capabilities: json({ supported_models: [] }) } });
  const thrown = new TypeError('boom');
  Object.defineProperty(thrown, 'name', { value: 'TypeError' });
  const service = new ServiceClient({
    ...on.fake.clientOptions,
    transport: () => {
      throw thrown;
    },
  });
  const failed: unknown[] = [];
  service.events$.subscribe((event) => void (event.type === 'request-failed' && failed.push(event.error)));
  const error = on.clock.reject(service.getServerCapabilities());
  expect(error).toMatchObject({ code: 'unexpected', message: 'TypeError: boom', retryable: false, cause: thrown });
  expect(failed).toEqual([error]);
});
